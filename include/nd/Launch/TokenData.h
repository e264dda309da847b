//===- TokenData.h - Token files and what is beside them --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_TOKENDATA_H
#define ND_LAUNCH_TOKENDATA_H

#include "nd/Launch/Manifest.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace nd::launch {

/// What a token file's sidecar says.
struct TokenFormat {
  int32_t tokenBytes = 2; ///< uint16 or uint32
  int64_t vocabulary = 0; ///< 0: unknown
  int64_t tokens = 0;     ///< in the file
};

/// tokens.bin -> tokens.json.
std::string sidecarPath(llvm::StringRef tokenFile);

/// The bytes of a token of type `uint16` or `uint32`.
llvm::Expected<int32_t> parseTokenType(llvm::StringRef name);

/// Finds out how a file's tokens are stored: by its sidecar, or by `dtype` where that is not empty. Checks that the
/// file is one.
llvm::Expected<TokenFormat> inspectTokenFile(llvm::StringRef path, llvm::StringRef dtype);

/// What to tell about a file that has fewer samples than a step of the program takes, or nothing. One that has none is
/// an error of the ranks.
std::string describeRepeats(const Manifest &manifest, llvm::StringRef path, int64_t tokens);

/// Writes a sidecar.
llvm::Error writeSidecar(llvm::StringRef tokenFile, const TokenFormat &format, int64_t tokens,
                         llvm::StringRef tokenizer);

} // namespace nd::launch

#endif // ND_LAUNCH_TOKENDATA_H
