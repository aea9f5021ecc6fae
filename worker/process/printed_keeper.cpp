#include "worker/process/printed_keeper.h"

#include <algorithm>
#include <utility>

namespace layerfarm::worker::process {

void PrintedKeeper::add(base::BytesView bytes) {
  total_ += bytes.size();
  if (head_.size() < part_) {
    const std::size_t taken = std::min(part_ - head_.size(), bytes.size());
    head_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
  }
  if (bytes.size() > part_) bytes.remove_prefix(bytes.size() - part_);
  tail_.append(bytes);
  // Cut only every so often: moving the tail on each small write would cost its square.
  if (tail_.size() > 2 * part_) tail_.erase(0, tail_.size() - part_);
}

Printed PrintedKeeper::take() {
  if (tail_.size() > part_) tail_.erase(0, tail_.size() - part_);
  Printed out;
  out.bytes = std::exchange(total_, 0);
  out.text = std::exchange(head_, {});
  const std::uint64_t dropped = out.bytes - out.text.size() - tail_.size();
  if (dropped > 0)
    out.text += "\n[... " + std::to_string(dropped) + " bytes are left out here ...]\n";
  out.text += std::exchange(tail_, {});
  return out;
}

}  // namespace layerfarm::worker::process
