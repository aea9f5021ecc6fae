# Third-party libraries under one naming scheme, deps::<name>, so that a folder's CMakeLists.txt reads as a list of
# words and only this file knows how Debian packages each of them.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(tl-expected CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(zstd CONFIG REQUIRED)
find_package(SQLiteCpp CONFIG REQUIRED)
find_package(valijson CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(tbb REQUIRED IMPORTED_TARGET tbb)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(libzmq REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
find_package(msgpack CONFIG REQUIRED PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/msgpackc-cxx)

function(layerfarm_dependency name)
  add_library(deps_${name} INTERFACE)
  target_link_libraries(deps_${name} INTERFACE ${ARGN})
  add_library(deps::${name} ALIAS deps_${name})
endfunction()

layerfarm_dependency(threads Threads::Threads)
layerfarm_dependency(expected tl::expected)
layerfarm_dependency(json nlohmann_json::nlohmann_json)
layerfarm_dependency(fmt fmt::fmt)
layerfarm_dependency(spdlog spdlog::spdlog)
layerfarm_dependency(cli11 CLI11::CLI11)
# By pkg-config: the CMake package links the slow debug library in every Debug build.
layerfarm_dependency(tbb PkgConfig::tbb)
layerfarm_dependency(zlib ZLIB::ZLIB)
layerfarm_dependency(zstd zstd::libzstd_shared)
layerfarm_dependency(sqlite SQLiteCpp PkgConfig::sqlite3)
layerfarm_dependency(sodium PkgConfig::sodium)
layerfarm_dependency(zmq PkgConfig::libzmq) # cppzmq is headers only, in the system's include folder
layerfarm_dependency(msgpack msgpackc-cxx)
layerfarm_dependency(valijson valijson)
layerfarm_dependency(dl ${CMAKE_DL_LIBS})

# --- what scripts/setup built --------------------------------------------------------------------------------------
# The scripts know the rule for places and names; asking them keeps it in one place.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/scripts/dependencies.lock" "${PROJECT_SOURCE_DIR}/scripts/lib/deps.sh"
  "${PROJECT_SOURCE_DIR}/scripts/lib/toolchains.py")
execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/setup" --paths
  OUTPUT_VARIABLE paths OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" paths "${paths}")
foreach(line IN LISTS paths)
  string(REGEX MATCH "^([a-z]+)=(.*)$" _ "${line}")
  set(LAYERFARM_DEPS_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()

# The Python environment and the toolchains beside it: "NAME FOLDER VERSION PACKAGE... | TEXT", one a line.
execute_process(COMMAND /usr/bin/python3 -I -B "${PROJECT_SOURCE_DIR}/scripts/lib/toolchains.py" folders
  OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" folders "${folders}")
set(LAYERFARM_TOOLCHAIN_FOLDERS "")
set(LAYERFARM_TOOLCHAIN_ROWS "")
foreach(line IN LISTS folders)
  if(NOT line MATCHES "^([a-z0-9]+) ([^ ]+) ([^ ]+) (.*) \\|( (.*))?$")
    message(FATAL_ERROR "scripts/lib/toolchains.py says what is not understood here: ${line}")
  endif()
  set(LAYERFARM_FOLDER_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  if(CMAKE_MATCH_1 STREQUAL "python")
    set(LAYERFARM_PYTHON_FOLDER "${CMAKE_MATCH_2}")
    continue()
  endif()
  list(APPEND LAYERFARM_TOOLCHAIN_FOLDERS "${CMAKE_MATCH_2}")
  string(APPEND LAYERFARM_TOOLCHAIN_ROWS "    {.name = \"${CMAKE_MATCH_1}\",\n     .folder = \"${CMAKE_MATCH_2}\",\n     .version = \"${CMAKE_MATCH_3}\",\n"
    "     .packages = \"${CMAKE_MATCH_4}\",\n     .what = \"${CMAKE_MATCH_6}\"},\n")
endforeach()

foreach(folder IN ITEMS "${LAYERFARM_PYTHON_FOLDER}" ${LAYERFARM_TOOLCHAIN_FOLDERS} "${LAYERFARM_DEPS_onnx}")
  if(NOT EXISTS "${LAYERFARM_DEPS_deps}/${folder}/.complete")
    message(FATAL_ERROR "${LAYERFARM_DEPS_deps}/${folder} is not there: run scripts/setup first")
  endif()
endforeach()

set(ONNX_DIR "${LAYERFARM_DEPS_deps}/${LAYERFARM_DEPS_onnx}/lib/cmake/ONNX" CACHE PATH "" FORCE)
find_package(ONNX CONFIG REQUIRED)
layerfarm_dependency(onnx ONNX::onnx)

# What users run names no folder of the machine that built it, neither in a message nor in its line tables.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(layerfarm_options INTERFACE
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${LAYERFARM_DEPS_deps}/=")
endif()

# Headers only: the library is opened at run time from the place that the dependency rule names, so that no program
# holds a path of this machine. An official release archive of the user's comes first.
if(DEFINED ENV{ONNXRUNTIME_ROOT})
  set(onnxruntime_root "$ENV{ONNXRUNTIME_ROOT}")
else()
  set(onnxruntime_root "${LAYERFARM_DEPS_deps}/${LAYERFARM_DEPS_onnxruntime}")
endif()
if(NOT EXISTS "${onnxruntime_root}/include/onnxruntime_cxx_api.h")
  message(FATAL_ERROR "no ONNX Runtime headers in ${onnxruntime_root}/include: run scripts/setup first")
endif()
layerfarm_dependency(onnxruntime)
target_include_directories(deps_onnxruntime SYSTEM INTERFACE "${onnxruntime_root}/include")
target_compile_definitions(deps_onnxruntime INTERFACE ORT_API_MANUAL_INIT)
target_link_libraries(deps_onnxruntime INTERFACE ${CMAKE_DL_LIBS})

# For tests/ alone, which tests/bench needs in the release build too.
find_package(doctest CONFIG REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
find_package(benchmark CONFIG REQUIRED)
layerfarm_dependency(doctest doctest::doctest)
layerfarm_dependency(rapidcheck rapidcheck)
layerfarm_dependency(benchmark benchmark::benchmark)
