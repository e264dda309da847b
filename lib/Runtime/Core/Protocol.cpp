//===- Protocol.cpp - Between the launcher and a rank ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Protocol.h"
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

using namespace nd::rt;

namespace {

bool sendAll(int socket, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t sent = send(socket, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    data += sent;
    bytes -= sent;
  }
  return true;
}

bool receiveAll(int socket, char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t received = recv(socket, data, bytes, 0);
    if (received < 0 && errno == EINTR)
      continue;
    if (received <= 0)
      return false;
    data += received;
    bytes -= received;
  }
  return true;
}

union ControlBuffer {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(int))];
};

} // namespace

bool nd::rt::sendMessage(int socket, MessageType type, const std::string &payload, int fd) {
  MessageHeader header{static_cast<uint32_t>(type), static_cast<uint32_t>(payload.size())};
  iovec part{&header, sizeof(header)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    cmsghdr *entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(entry), &fd, sizeof(int));
  }
  ssize_t sent;
  do
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent <= 0 || !sendAll(socket, reinterpret_cast<char *>(&header) + sent, sizeof(header) - sent))
    return false;
  return sendAll(socket, payload.data(), payload.size());
}

bool nd::rt::receiveMessage(int socket, MessageType &type, std::string &payload, int *fd) {
  MessageHeader header;
  iovec part{&header, sizeof(header)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  if (fd)
    *fd = -1;
  ssize_t received;
  do
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received <= 0)
    return false;
  cmsghdr *entry = CMSG_FIRSTHDR(&message);
  if (entry && entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS) {
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(entry), sizeof(int));
    if (fd)
      *fd = descriptor;
    else
      close(descriptor);
  }
  if (!receiveAll(socket, reinterpret_cast<char *>(&header) + received, sizeof(header) - received) ||
      header.bytes > maxPayload)
    return false;
  type = static_cast<MessageType>(header.type);
  payload.resize(header.bytes);
  return receiveAll(socket, payload.data(), payload.size());
}
