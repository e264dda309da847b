"""nd_export: the front end of nd. PyTorch modules and Hugging Face models become an ONNX graph and a JSON sidecar.

    import nd_export
    nd_export.export(module, example_inputs, "out/", outputs=("loss_sum", "loss_count"))

Commands: `nd-export hf DIR -o out/`, `nd-check DIR`. Helpers for tests are in `nd_export.testing`.
"""

from .errors import ExportError
from .version import __version__

__all__ = ["ExportError", "Exported", "__version__", "export"]


def __getattr__(name: str):
    # PyTorch and transformers take seconds to import: --help and the check of arguments do without.
    if name in ("export", "Exported"):
        from . import api

        return getattr(api, name)
    raise AttributeError(f"module 'nd_export' has no attribute '{name}'")
