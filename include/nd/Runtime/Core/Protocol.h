//===- Protocol.h - Between the launcher and a rank -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A stream socket carries messages: a header, then a payload of fields in the order documented here. The rank says
// Hello, the launcher configures it (with the job's memfd beside the message) and then sends commands, one at a time;
// the rank answers each with Done or Error, after a Step message for every step of a Run. Nothing here knows JSON: the
// launcher resolves files.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_PROTOCOL_H
#define ND_RUNTIME_CORE_PROTOCOL_H

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace nd::rt {

inline constexpr uint32_t protocolVersion = 3;
inline constexpr const char *launchFdVariable = "ND_LAUNCH_FD";

enum class MessageType : uint32_t {
  Hello,     ///< rank: protocol version, ABI version, number of tensors; fingerprints of the mesh and of each tensor
  Configure, ///< launcher: rank, ranks, threads, total steps; then the token file, see Session::configure
  Ready,     ///< rank: arena bytes, milliseconds of first touch, CPU level
  Load,      ///< launcher: file slices to read
  Run,       ///< launcher: last step, whether scalars are kept (a call) and inputs are in place
  Step,      ///< rank: the metrics of a step
  Save,      ///< launcher: file slices to write
  Verify,    ///< launcher: file slices to compare with
  Quit,      ///< launcher: the end
  Done,      ///< rank: the command is carried out
  Error,     ///< rank: a message; the job fails
};

struct MessageHeader {
  uint32_t type, bytes;
};

/// The longest payload that a reader accepts: a table of slices of tens of thousands of tensors.
inline constexpr uint32_t maxPayload = 64u << 20;

class MessageWriter {
public:
  template <typename T> MessageWriter &add(T value) {
    static_assert(std::is_arithmetic_v<T>);
    payload.append(reinterpret_cast<const char *>(&value), sizeof(value));
    return *this;
  }
  MessageWriter &add(const std::string &text) {
    add<uint32_t>(text.size());
    payload += text;
    return *this;
  }
  const std::string &getPayload() const { return payload; }
  /// Empties the message, keeping its memory.
  void clear() { payload.clear(); }

private:
  std::string payload;
};

/// Reads the fields of a payload. Past its end every field is zero and ok() is false.
class MessageReader {
public:
  explicit MessageReader(const std::string &payload) : at(payload.data()), end(at + payload.size()) {}

  template <typename T> T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (static_cast<size_t>(end - at) < sizeof(T)) {
      good = false;
      return value;
    }
    memcpy(&value, at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  std::string getString() {
    auto size = get<uint32_t>();
    if (static_cast<size_t>(end - at) < size) {
      good = false;
      return {};
    }
    std::string text(at, size);
    at += size;
    return text;
  }
  bool ok() const { return good; }

private:
  const char *at, *end;
  bool good = true;
};

/// Sends a whole message, with a file descriptor beside it unless that is -1. False when the peer is gone.
bool sendMessage(int socket, MessageType type, const std::string &payload, int fd = -1);

/// Receives a whole message; a descriptor beside it goes to `fd` (-1: none came). False when the peer is gone or sent
/// nonsense.
bool receiveMessage(int socket, MessageType &type, std::string &payload, int *fd = nullptr);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_PROTOCOL_H
