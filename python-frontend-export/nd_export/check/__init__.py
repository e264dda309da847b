"""`nd-check`: one step of nd beside transformers, on the same weights and tokens."""
