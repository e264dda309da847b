//===- nd-data.cpp - Makes token files of text ----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TokenizeScript.h"
#include "nd/Launch/Manifest.h"
#include "nd/Launch/TokenData.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace nd::launch;

namespace {

cl::OptionCategory category("nd-data options");
cl::list<std::string> texts(cl::Positional, cl::OneOrMore, cl::desc("<text files, - for standard input>"),
                            cl::cat(category));
cl::opt<std::string> tokenizer("tokenizer", cl::desc("`bytes`: one token a byte; or a tokenizer.json [bytes]"),
                               cl::init("bytes"), cl::cat(category));
cl::opt<std::string> output("o", cl::Required, cl::desc("Token file to write; its format goes beside it as .json"),
                            cl::value_desc("tokens.bin"), cl::cat(category));

/// What was written.
struct Written {
  TokenFormat format;
  int64_t tokens = 0;
};

Expected<Written> writeBytes(StringRef path) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return makeError("cannot write " + path + ": " + code.message());
  Written written;
  written.format = {2, 256};
  for (const std::string &text : texts) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFileOrSTDIN(text);
    if (!buffer)
      return makeError("cannot read " + text + ": " + buffer.getError().message());
    for (char byte : (*buffer)->getBuffer()) {
      const char token[2] = {byte, 0};
      stream.write(token, 2);
    }
    written.tokens += static_cast<int64_t>((*buffer)->getBufferSize());
  }
  stream.close();
  if (!stream.has_error())
    return written;
  std::string problem = stream.error().message();
  stream.clear_error();
  return makeError("cannot write " + path + ": " + problem);
}

/// A tokenizer.json is the business of the library that defines it.
Expected<Written> writeTokenized(StringRef path) {
  if (!sys::fs::exists(tokenizer))
    return makeError("cannot open the tokenizer " + tokenizer + "; give a tokenizer.json, or --tokenizer=bytes");
  for (const std::string &text : texts)
    if (!sys::fs::exists(text))
      return makeError("cannot read " + text);
  ErrorOr<std::string> python = sys::findProgramByName("python3");
  if (!python)
    return makeError(
        "a tokenizer.json needs python3 with the package tokenizers on the PATH: run this after `. scripts/env.sh`");
  SmallString<128> report;
  if (std::error_code code = sys::fs::createTemporaryFile("nd-data", "txt", report))
    return makeError("cannot create a temporary file: " + code.message());
  FileRemover remover(report);
  std::vector<StringRef> arguments = {*python, "-c", tokenizeScript, tokenizer, path};
  arguments.insert(arguments.end(), texts.begin(), texts.end());
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(report), std::nullopt};
  std::string problem;
  if (sys::ExecuteAndWait(*python, arguments, std::nullopt, redirects, 0, 0, &problem) != 0)
    return makeError("tokenizing failed" + (problem.empty() ? "" : ": " + problem));
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(report);
  SmallVector<StringRef> fields;
  if (buffer)
    (*buffer)->getBuffer().trim().split(fields, ' ');
  Written written;
  if (fields.size() != 3 || fields[0].getAsInteger(10, written.format.tokenBytes) ||
      fields[1].getAsInteger(10, written.format.vocabulary) || fields[2].getAsInteger(10, written.tokens))
    return makeError("tokenizing reported nothing");
  return written;
}

Error writeTokens() {
  std::string sidecar = sidecarPath(output);
  if (sidecar == output)
    return makeError("-o " + output + ": the name ending in .json is for the sidecar; use .bin");
  if (sys::fs::exists(output) && !sys::fs::is_regular_file(output))
    return makeError("-o " + output + " exists and is not a file");
  std::string temporary = output + ".writing";
  FileRemover remover(temporary);
  Expected<Written> written = tokenizer == "bytes" ? writeBytes(temporary) : writeTokenized(temporary);
  if (!written)
    return written.takeError();
  if (written->tokens == 0)
    return makeError("the text is empty: no tokens to write");
  if (std::error_code code = sys::fs::rename(temporary, output))
    return makeError("cannot write " + output + ": " + code.message());
  remover.releaseFile();
  if (Error error = writeSidecar(output, written->format, written->tokens, tokenizer))
    return error;
  outs() << output << ": " << written->tokens << " tokens of a vocabulary of " << written->format.vocabulary << '\n';
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initialize(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Makes a token file of text, for nd-run --data.\n");
  if (Error error = writeTokens()) {
    WithColor::error(errs(), "nd-data") << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
