// The toolchains of this program. A new adapter is its file and one line here
// (docs/adding-a-toolchain.md).
#include "worker/toolchain/toolchain.h"

// name in chip files, function that makes one (defined in the adapter's own file)
#define LAYERFARM_TOOLCHAINS(ADAPTER)        \
  ADAPTER("iree", make_iree_toolchain)       \
  ADAPTER("null", make_null_toolchain)       \
  ADAPTER("ort", make_ort_toolchain)         \
  ADAPTER("ort-ep", make_ort_ep_toolchain)   \
  ADAPTER("process", make_process_toolchain) \
  ADAPTER("torq", make_torq_toolchain)

namespace layerfarm::worker::toolchain {

#define LAYERFARM_DECLARE(name, make) std::unique_ptr<Toolchain> make();
LAYERFARM_TOOLCHAINS(LAYERFARM_DECLARE)
#undef LAYERFARM_DECLARE

std::unique_ptr<Toolchain> make_toolchain(std::string_view name) {
#define LAYERFARM_MAKE(known, make) \
  if (name == (known)) return make();
  LAYERFARM_TOOLCHAINS(LAYERFARM_MAKE)
#undef LAYERFARM_MAKE
  return nullptr;
}

std::vector<std::string> toolchain_names() {
#define LAYERFARM_NAME(known, make) known,
  return {LAYERFARM_TOOLCHAINS(LAYERFARM_NAME)};
#undef LAYERFARM_NAME
}

}  // namespace layerfarm::worker::toolchain
