#include "worker/process/child_output.h"

#include <fcntl.h>

#include <cerrno>

namespace layerfarm::worker::process {

base::Result<ChildOutput> ChildOutput::make() {
  ChildOutput out;
  for (Stream& stream : out.streams_) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return base::fail(base::os_error("cannot make a pipe", errno));
    stream.read_end = Descriptor(ends[0]);
    stream.write_end = Descriptor(ends[1]);
    // This end only: tools do not expect an output that says "try again".
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
      return base::fail(base::os_error("cannot make a pipe", errno));
  }
  return out;
}

void ChildOutput::started() {
  for (Stream& stream : streams_) stream.write_end.close();
}

void ChildOutput::drain(std::size_t most) {
  static thread_local std::array<char, std::size_t{64} << 10> buffer;
  for (Stream& stream : streams_) {
    std::size_t taken = 0;
    while (stream.read_end.open() && taken < most) {
      const ssize_t n = ::read(stream.read_end.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        stream.read_end.close();
        break;
      }
      stream.keeper.add({buffer.data(), static_cast<std::size_t>(n)});
      taken += static_cast<std::size_t>(n);
      // A pipe that gave less than asked for is empty: saves asking again.
      if (static_cast<std::size_t>(n) < buffer.size()) break;
    }
  }
}

}  // namespace layerfarm::worker::process
