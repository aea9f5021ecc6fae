// ChildOutput: the reading ends of what a child prints. Job thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "shared/base/result.h"
#include "worker/process/descriptor.h"
#include "worker/process/printed_keeper.h"

namespace layerfarm::worker::process {

class ChildOutput {
 public:
  /// Makes both pipes.
  static base::Result<ChildOutput> make();

  /// What the child gets. Closed here by `started()`, once it has them.
  [[nodiscard]] int output_end() const { return streams_[0].write_end.get(); }
  [[nodiscard]] int errors_end() const { return streams_[1].write_end.get(); }
  void started();

  /// To be polled for reading; -1 once that stream was closed.
  [[nodiscard]] int output_fd() const { return streams_[0].read_end.get(); }
  [[nodiscard]] int errors_fd() const { return streams_[1].read_end.get(); }
  /// Takes what is there, without waiting. At most `most` bytes a stream, so that a child that
  /// prints without end cannot keep its caller here.
  void drain(std::size_t most = std::size_t{1} << 20);
  /// Printed since the last take, both streams.
  [[nodiscard]] std::uint64_t bytes() const {
    return streams_[0].keeper.bytes() + streams_[1].keeper.bytes();
  }
  [[nodiscard]] Printed take_output() { return streams_[0].keeper.take(); }
  [[nodiscard]] Printed take_errors() { return streams_[1].keeper.take(); }

 private:
  struct Stream {
    Descriptor read_end;
    Descriptor write_end;
    PrintedKeeper keeper;
  };
  std::array<Stream, 2> streams_;
};

}  // namespace layerfarm::worker::process
