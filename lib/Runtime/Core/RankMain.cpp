//===- RankMain.cpp - An executable's main: the launcher's commands -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Fingerprint.h"
#include "nd/Runtime/Core/Protocol.h"
#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/TokenFile.h"
#include "nd/Runtime/Core/nd.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace nd::rt;

namespace {

/// A rank at the launcher's end of the socket.
class Session {
public:
  Session(const nd_program &program, int socket) : program(program), socket(socket) {}
  ~Session() {
    if (rank)
      nd_close(rank);
  }

  int serve();

private:
  bool say(MessageType type) {
    bool sent = sendMessage(socket, type, out.getPayload());
    out.clear();
    return sent;
  }
  int finish(bool good) {
    if (good)
      return say(MessageType::Done) ? 0 : 1;
    out.add(error.empty() && rank ? std::string(nd_error(rank)) : error);
    say(MessageType::Error);
    return 1;
  }

  bool configure(MessageReader &in, int fd);
  bool move(MessageReader &in, int (*mover)(nd_rank *, const nd_file_slice *, int64_t));
  bool run(MessageReader &in);
  void reportStep(const nd_step_result &result);

  const nd_program &program;
  int socket;
  nd_rank *rank = nullptr;
  TokenFile tokens;
  bool hasTokens = false;
  MessageWriter out;
  std::string error;
  std::vector<nd_sent> sent;
};

bool Session::configure(MessageReader &in, int fd) {
  nd_options options{};
  options.rank = in.get<int32_t>();
  options.ranks = in.get<int32_t>();
  options.threads = in.get<int32_t>();
  options.total_steps = in.get<int64_t>();
  options.shared_memory_fd = fd;
  TokenSource source;
  source.path = in.getString();
  source.tokenBytes = in.get<int32_t>();
  source.shuffle = in.get<int32_t>() != 0;
  source.seed = in.get<uint64_t>();
  std::vector<int32_t> cores(in.get<int32_t>() ? std::max(0, options.threads) : 0);
  for (int32_t &core : cores)
    core = in.get<int32_t>();
  options.cores = cores.empty() ? nullptr : cores.data();
  if (!in.ok()) {
    error = "the launcher's configuration is cut short";
    return false;
  }
  char message[2048];
  rank = nd_open(&program, &options, message, sizeof(message));
  if (!rank) {
    error = message;
    return false;
  }
  hasTokens = !source.path.empty();
  if (hasTokens && !tokens.open(*rank, source, error))
    return false;
  sent.resize(nd_sent_bytes(rank, nullptr, 0));
  out.add<int64_t>(rank->program->arena_bytes).add<double>(rank->touchMilliseconds).add<int32_t>(rank->cpuLevel);
  return say(MessageType::Ready);
}

bool Session::move(MessageReader &in, int (*mover)(nd_rank *, const nd_file_slice *, int64_t)) {
  auto count = in.get<uint32_t>();
  std::vector<nd_file_slice> slices;
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    nd_file_slice slice{};
    slice.tensor = in.get<int32_t>();
    slice.dtype = in.get<int32_t>();
    slice.offset = in.get<int64_t>();
    slice.part_dim = in.get<int32_t>();
    slice.part_offset = in.get<int64_t>();
    slice.part_size = in.get<int64_t>();
    paths.push_back(in.getString());
    slices.push_back(slice);
  }
  if (!in.ok()) {
    error = "the launcher's table of files is cut short";
    return false;
  }
  for (uint32_t i = 0; i < count; ++i)
    slices[i].path = paths[i].c_str();
  return mover(rank, slices.data(), count) == 0;
}

/// Memory of this rank: private pages, and its arena where that is shared; not the peers' arenas that it has read. Read
/// without stdio, which would allocate.
int64_t residentBytes(const nd_rank &rank) {
  char text[128] = "";
  long pages = 0, resident = 0, shared = 0;
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  if (read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%ld %ld %ld", &pages, &resident, &shared) != 3)
    resident = shared = 0;
  close(fd);
  if (!rank.hasPeers())
    return resident * sysconf(_SC_PAGESIZE);
  return (resident - shared) * sysconf(_SC_PAGESIZE) + rank.arenaBytes;
}

void Session::reportStep(const nd_step_result &result) {
  out.add(result.step).add(result.loss).add(result.grad_norm).add(result.lr).add(result.tokens).add(result.applied);
  out.add(result.milliseconds).add(residentBytes(*rank));
  for (double milliseconds : rank->phaseMilliseconds)
    out.add(milliseconds);
  nd_sent_bytes(rank, sent.data(), sent.size());
  out.add<uint32_t>(sent.size());
  for (const nd_sent &entry : sent)
    out.add(entry.collective).add(entry.bytes).add(entry.bytes_between_nodes);
  say(MessageType::Step);
}

bool Session::run(MessageReader &in) {
  auto last = in.get<int64_t>();
  bool isCall = in.get<int32_t>() != 0;
  while (in.ok() && rank->stepsDone < last) {
    if (hasTokens && !isCall && !tokens.fill(*rank, rank->stepsDone + 1, error))
      return false;
    nd_step_result result;
    if (nd_step(rank, isCall, &result) != 0)
      return false;
    reportStep(result);
  }
  return in.ok();
}

int Session::serve() {
  out.add(protocolVersion).add(program.abi_version).add(program.num_tensors);
  out.add(meshFingerprint(program.num_axes, program.axis_sizes, program.axis_names));
  for (int32_t i = 0; i < program.num_tensors; ++i)
    out.add(fingerprint(program.tensors[i]));
  if (!say(MessageType::Hello))
    return 1;
  MessageType type;
  std::string payload;
  int fd = -1;
  while (receiveMessage(socket, type, payload, &fd)) {
    MessageReader in(payload);
    bool good = false;
    if (type == MessageType::Quit)
      return 0;
    if (type == MessageType::Configure && !rank) {
      if (!configure(in, fd))
        return finish(false);
      continue;
    }
    if (!rank)
      error = "the launcher sent a command before the configuration";
    else if (type == MessageType::Load)
      good = move(in, nd_load);
    else if (type == MessageType::Save)
      good = move(in, nd_save);
    else if (type == MessageType::Verify)
      good = move(in, nd_verify);
    else if (type == MessageType::Run)
      good = run(in);
    else
      error = "the launcher sent a command that this executable does not know; recompile the program";
    if (finish(good) != 0)
      return 1;
  }
  return 1; // the launcher is gone
}

} // namespace

int nd_rank_main(int argc, char **argv, const nd_program *program) {
  const char *variable = getenv(launchFdVariable);
  int socket = variable ? atoi(variable) : -1;
  if (socket < 0 || argc > 1) {
    fprintf(stderr, "%s: one rank of the program '%s'; start it with nd-run on its folder\n", argc ? argv[0] : "rank",
            program->name);
    return 2;
  }
  // A rank never outlives its launcher, nor does it die of its own pipe.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN); // the launcher decides what Ctrl-C means
  return Session(*program, socket).serve();
}
