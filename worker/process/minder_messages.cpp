#include "worker/process/minder_messages.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace layerfarm::worker::process {
namespace {

constexpr std::size_t kLargestPacket = std::size_t{64} << 10;
constexpr std::size_t kMostDescriptors = 4;
/// Kind byte of a packet whose message is in the memory file that comes as last descriptor.
constexpr char kInMemoryFile = '\x7f';

/// Writes fields one after the other.
struct Writer {
  base::Bytes out;
  void operator()(std::int64_t value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(int value) { (*this)(std::int64_t{value}); }
  void operator()(bool value) { (*this)(std::int64_t{value ? 1 : 0}); }
  void operator()(Ended value) { (*this)(static_cast<std::int64_t>(value)); }
  void operator()(Cage value) { (*this)(static_cast<std::int64_t>(value)); }
  void operator()(base::Duration value) { (*this)(std::int64_t{value.count()}); }
  void operator()(const std::string& value) {
    (*this)(static_cast<std::int64_t>(value.size()));
    out.append(value);
  }
  template <typename A, typename B>
  void operator()(const std::pair<A, B>& value) {
    (*this)(value.first);
    (*this)(value.second);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
};

/// Reads the same fields; `good` turns false at the first that is not there.
struct Reader {
  base::BytesView left;
  bool good = true;

  void operator()(std::int64_t& value) {
    if (left.size() < sizeof value) {
      good = false;
      return;
    }
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
  }
  template <typename T>
  void as_number(T& value) {
    std::int64_t number = 0;
    (*this)(number);
    value = static_cast<T>(number);
  }
  void operator()(int& value) { as_number(value); }
  void operator()(bool& value) { as_number(value); }
  void operator()(Ended& value) { as_number(value); }
  void operator()(Cage& value) { as_number(value); }
  void operator()(base::Duration& value) {
    std::int64_t count = 0;
    (*this)(count);
    value = base::Duration(count);
  }
  void operator()(std::string& value) {
    std::int64_t size = 0;
    (*this)(size);
    if (!good || size < 0 || static_cast<std::uint64_t>(size) > left.size()) {
      good = false;
      return;
    }
    value.assign(left.substr(0, static_cast<std::size_t>(size)));
    left.remove_prefix(static_cast<std::size_t>(size));
  }
  template <typename A, typename B>
  void operator()(std::pair<A, B>& value) {
    (*this)(value.first);
    (*this)(value.second);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    std::int64_t size = 0;
    (*this)(size);
    // Each element takes eight bytes or more, which bounds what a wrong count could make us
    // allocate.
    if (!good || size < 0 ||
        static_cast<std::uint64_t>(size) > left.size() / sizeof(std::int64_t)) {
      good = false;
      return;
    }
    values.resize(static_cast<std::size_t>(size));
    for (T& value : values) (*this)(value);
  }
};

// The fields of each message, once, for both directions.
template <typename Io, typename M>
void fields(Io& io, M& m) {
  using Plain = std::remove_const_t<M>;
  if constexpr (std::is_same_v<Plain, StartChild>) {
    io(m.program), io(m.argv), io(m.environment), io(m.folder), io(m.cores);
    io(m.bounds.wall), io(m.bounds.memory_bytes), io(m.bounds.output_bytes),
        io(m.bounds.file_bytes), io(m.resident);
  } else if constexpr (std::is_same_v<Plain, EndChild>) {
    io(m.why);
  } else if constexpr (std::is_same_v<Plain, MinderReady> || std::is_same_v<Plain, MinderMade>) {
    io(m.cage), io(m.problem);
  } else if constexpr (std::is_same_v<Plain, ChildEnded>) {
    io(m.ended), io(m.exit_code), io(m.signal), io(m.wall_us), io(m.cpu_us),
        io(m.peak_memory_bytes), io(m.problem), io(m.stuck);
  } else if constexpr (std::is_same_v<Plain, Memory>) {
    io(m.bytes);
  }
}

template <std::size_t I = 0>
bool make_alternative(std::size_t index, Message& out) {
  if constexpr (I < std::variant_size_v<Message>) {
    if (index != I) return make_alternative<I + 1>(index, out);
    out.emplace<I>();
    return true;
  } else {
    return false;
  }
}

/// Puts `content` into a memory file of its own, to be read from the start.
Descriptor memory_file(base::BytesView content) {
  Descriptor file(::memfd_create("layerfarm-order", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file.open() && done < content.size()) {
    const ssize_t n = ::write(file.get(), content.data() + done, content.size() - done);
    if (n <= 0) return {};
    done += static_cast<std::size_t>(n);
  }
  return file;
}

base::Result<base::Bytes> read_memory_file(int file) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return base::fail(base::os_error("cannot read a message", errno));
  base::Bytes out(static_cast<std::size_t>(info.st_size), '\0');
  if (::pread(file, out.data(), out.size(), 0) != info.st_size) {
    return base::fail(base::os_error("cannot read a message", errno));
  }
  return out;
}

base::Result<void> send_packet(int socket, base::BytesView bytes,
                               const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof(int) * descriptors.size());
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) {
      return base::fail(base::ErrorCode::Unavailable,
                        "the launcher's process at the other end is gone");
    }
    return base::fail(base::os_error("cannot reach the launcher", errno));
  }
  return {};
}

std::vector<Descriptor> take_descriptors(msghdr& header) {
  std::vector<Descriptor> out;
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof fd);
      out.emplace_back(fd);
    }
  }
  return out;
}

}  // namespace

base::Bytes encode(const Message& message) {
  Writer writer;
  writer.out.push_back(static_cast<char>(message.index()));
  std::visit([&writer](const auto& m) { fields(writer, m); }, message);
  return std::move(writer.out);
}

base::Result<Message> decode(base::BytesView bytes) {
  Message out;
  if (bytes.empty() || !make_alternative(static_cast<unsigned char>(bytes[0]), out)) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "a message of the launcher has an unknown kind");
  }
  Reader reader{bytes.substr(1)};
  std::visit([&reader](auto& m) { fields(reader, m); }, out);
  if (!reader.good || !reader.left.empty()) {
    return base::fail(base::ErrorCode::InvalidInput,
                      "a message of the launcher has the wrong length");
  }
  return out;
}

base::Result<void> send(int socket, const Message& message, const std::vector<int>& descriptors) {
  const base::Bytes bytes = encode(message);
  if (bytes.size() <= kLargestPacket) return send_packet(socket, bytes, descriptors);
  const Descriptor file = memory_file(bytes);
  if (!file.open())
    return base::fail(base::os_error("cannot hand a large command to the launcher", errno));
  std::vector<int> all = descriptors;
  all.push_back(file.get());
  return send_packet(socket, base::BytesView(&kInMemoryFile, 1), all);
}

base::Result<Received> receive(int socket, base::Duration wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  pollfd entry{socket, POLLIN, 0};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now())
            .count();
    const int ready = ::poll(&entry, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready > 0) break;
    if (ready == 0) return base::fail(base::ErrorCode::TimedOut, "the launcher does not answer");
    if (errno != EINTR) return base::fail(base::os_error("cannot hear the launcher", errno));
  }
  static thread_local std::array<char, kLargestPacket> buffer;
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return base::fail(base::ErrorCode::Unavailable,
                      "the launcher's process at the other end is gone");
  }
  if (got < 0) return base::fail(base::os_error("cannot hear the launcher", errno));
  Received out;
  out.descriptors = take_descriptors(header);
  base::BytesView bytes(buffer.data(), static_cast<std::size_t>(got));
  base::Bytes large;
  if (bytes[0] == kInMemoryFile && !out.descriptors.empty()) {
    auto content = read_memory_file(out.descriptors.back().get());
    out.descriptors.pop_back();
    if (!content) return base::fail(std::move(content.error()));
    large = std::move(*content);
    bytes = large;
  }
  auto message = decode(bytes);
  if (!message) return base::fail(std::move(message.error()));
  out.message = std::move(*message);
  return out;
}

}  // namespace layerfarm::worker::process
