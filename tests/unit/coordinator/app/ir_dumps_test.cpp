#include "coordinator/app/ir_dumps.h"

#include <doctest/doctest.h>

using layerfarm::coordinator::app::folder_name_of;

TEST_CASE("a layer's folder is its id, where a path can hold it") {
  CHECK(folder_name_of("Conv_c1", 3) == "Conv_c1");
  CHECK(folder_name_of("Add_层 1", 3) == "Add_层 1");
}

TEST_CASE("ids that a path cannot hold stay apart by their place") {
  CHECK(folder_name_of("Add_out/a", 3) == "Add_out_a_3");
  CHECK(folder_name_of("Add_out_a", 4) == "Add_out_a");
  CHECK(folder_name_of("..", 5) == ".._5");
  CHECK(folder_name_of("", 6) == "_6");
  CHECK(folder_name_of("Add_\n", 7) == "Add___7");
  CHECK(folder_name_of(std::string(300, 'a'), 8) == std::string(200, 'a') + "_8");
}
