//===- JobProcess.cpp - One process of a job ------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "JobProcess.h"
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

double nd::launch::monotonicMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

std::string nd::launch::describeEnd(int state) {
  if (WIFSIGNALED(state))
    return "was killed by signal " + std::to_string(WTERMSIG(state)) + " (" + strsignal(WTERMSIG(state)) + ")";
  return "ended with code " + std::to_string(WEXITSTATUS(state));
}

bool nd::launch::lockForThisProcess(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

void nd::launch::fillJobSignals(sigset_t &set) {
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&set, signal);
}

namespace {

/// Becomes the rank, in the child.
[[noreturn]] void becomeRank(pid_t parent, int socket, int output, const char *executable, char *const *environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);    // the launcher died in between
  setpgid(0, 0); // the terminal's Ctrl-C is the launcher's to handle
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = open("/dev/null", O_RDONLY);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0 ||
      fcntl(socket, F_SETFD, 0) != 0)
    _exit(127);
  char *const arguments[] = {const_cast<char *>(executable), nullptr};
  execve(executable, arguments, environment);
  dprintf(STDERR_FILENO, "cannot execute %s: %s\n", executable, strerror(errno));
  _exit(127);
}

} // namespace

Expected<std::unique_ptr<Job::Process>> Job::Process::start(int64_t rank, const std::string &executable) {
  auto process = std::make_unique<Process>();
  process->rank = rank;
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return makeError(Twine("cannot make a socket for rank ") + Twine(rank) + ": " + strerror(errno));
  process->socket = sockets[0];
  if (pipe2(pipes, O_CLOEXEC) != 0) {
    close(sockets[1]);
    return makeError(Twine("cannot make a pipe for rank ") + Twine(rank) + ": " + strerror(errno));
  }
  process->output = pipes[0];
  fcntl(process->output, F_SETFL, O_NONBLOCK);
  timeval limit{30, 0};
  setsockopt(process->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  std::vector<std::string> variables;
  for (char **variable = environ; *variable; ++variable)
    if (!StringRef(*variable).starts_with(Twine(rt::launchFdVariable).str() + "="))
      variables.push_back(*variable);
  variables.push_back(Twine(rt::launchFdVariable).str() + "=" + std::to_string(sockets[1]));
  std::vector<char *> environment;
  for (std::string &variable : variables)
    environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t parent = getpid();
  process->pid = fork();
  if (process->pid == 0)
    becomeRank(parent, sockets[1], pipes[1], executable.c_str(), environment.data());
  close(sockets[1]);
  close(pipes[1]);
  if (process->pid < 0)
    return makeError(Twine("cannot start rank ") + Twine(rank) + ": " + strerror(errno));
  return process;
}

Job::Process::~Process() {
  kill();
  if (socket >= 0)
    close(socket);
  if (output >= 0)
    close(output);
}

bool Job::Process::receive() {
  char buffer[65536];
  while (true) {
    ssize_t bytes = recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (bytes > 0)
      received.append(buffer, bytes);
    else if (bytes < 0 && errno == EINTR)
      continue;
    else
      return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool Job::Process::nextMessage(rt::MessageType &type, std::string &payload) {
  rt::MessageHeader header;
  if (received.size() < sizeof(header))
    return false;
  memcpy(&header, received.data(), sizeof(header));
  if (received.size() - sizeof(header) < header.bytes)
    return false;
  type = static_cast<rt::MessageType>(header.type);
  payload = received.substr(sizeof(header), header.bytes);
  received.erase(0, sizeof(header) + header.bytes);
  return true;
}

void Job::Process::readOutput(function_ref<void(StringRef)> onLine) {
  char buffer[4096];
  ssize_t bytes;
  auto emit = [&](StringRef line) {
    constexpr size_t keptLines = 20;
    lastLines.push_back(line.str());
    if (lastLines.size() > keptLines)
      lastLines.pop_front();
    onLine(line);
  };
  while (output >= 0 && (bytes = read(output, buffer, sizeof(buffer))) > 0) {
    pendingLine.append(buffer, bytes);
    for (size_t end; (end = pendingLine.find('\n')) != std::string::npos;) {
      emit(StringRef(pendingLine).take_front(end));
      pendingLine.erase(0, end + 1);
    }
  }
  if (output < 0 || bytes != 0)
    return;
  if (!pendingLine.empty())
    emit(pendingLine);
  pendingLine.clear();
  close(output);
  output = -1; // poll ignores it from now on
}

int Job::Process::waitForExit() {
  constexpr int pieces = 500, pieceMicroseconds = 10000;
  int state = 0;
  for (int i = 0; i < pieces && !ended; ++i) {
    if (waitpid(pid, &state, WNOHANG) == pid)
      ended = true;
    else
      usleep(i < 10 ? 200 : pieceMicroseconds);
  }
  if (!ended) {
    kill();
    return 128 + SIGKILL;
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

std::string Job::Process::explainEnd() {
  int state;
  for (int i = 0; i < 100; ++i) {
    if (waitpid(pid, &state, WNOHANG) != pid) {
      usleep(2000);
      continue;
    }
    ended = true;
    return describeEnd(state);
  }
  return "closed its connection";
}

void Job::Process::kill() {
  if (ended || pid <= 0)
    return;
  ::kill(pid, SIGKILL);
  int state;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
    continue;
  ended = true;
}
