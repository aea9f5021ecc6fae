// The model formats of this program. A new one is its file and one line here
// (docs/adding-a-model-format.md).
#include "worker/toolchain/model_format.h"

// function that makes one (defined in the format's own file); the first that reads a file gets it
#define LAYERFARM_MODEL_FORMATS(FORMAT) FORMAT(make_onnx_format)

namespace layerfarm::worker::toolchain {

#define LAYERFARM_DECLARE(make) std::unique_ptr<ModelFormat> make();
LAYERFARM_MODEL_FORMATS(LAYERFARM_DECLARE)
#undef LAYERFARM_DECLARE

ModelFormats make_model_formats() {
  ModelFormats formats;
#define LAYERFARM_ADD(make) formats.push_back(make());
  LAYERFARM_MODEL_FORMATS(LAYERFARM_ADD)
#undef LAYERFARM_ADD
  return formats;
}

}  // namespace layerfarm::worker::toolchain
