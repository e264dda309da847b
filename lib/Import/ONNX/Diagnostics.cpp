//===- Diagnostics.cpp - Errors as a person reads them --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Import/ONNX/Diagnostics.h"
#include "Locations.h"
#include "nd/Support/Locations.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nd::onnx;

PlainDiagnostics::PlainDiagnostics(MLIRContext *context, StringRef tool)
    : ScopedDiagnosticHandler(context, [tool = tool.str()](Diagnostic &diagnostic) {
        auto print = [&](Diagnostic &one) {
          llvm::errs() << tool << ": " << severityName(one.getSeverity()) << ": " << one << "\n";
          if (std::string where = describe(one.getLocation()); !where.empty())
            llvm::errs() << "  in " << where << "\n";
        };
        print(diagnostic);
        for (Diagnostic &note : diagnostic.getNotes())
          print(note);
        return success();
      }) {}
