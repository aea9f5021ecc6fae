# How everything of ours is compiled: one INTERFACE target that every library, program and test links.

option(LAYERFARM_WERROR "Warnings are errors" ON)
option(LAYERFARM_TESTS "Build the tests" ON)
option(LAYERFARM_COVERAGE "Count lines" OFF)
option(LAYERFARM_FUZZER "Link the fuzz targets with libFuzzer (clang only)" OFF)
set(LAYERFARM_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# Line tables only (-g1): back traces name file and line, and on two cores the build is a fifth faster than with -g.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout, so that several checkouts of one user share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CCACHE}")
endif()

add_library(layerfarm_options INTERFACE)
# Designated initialisers name what differs; the rest has its default where it is declared.
target_compile_options(layerfarm_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wunused -Wextra-semi)
if(LAYERFARM_WERROR)
  target_compile_options(layerfarm_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False reports of g++ 12 about std::string's own operator+ (GCC bug 105651), and about optional and variant.
  target_compile_options(layerfarm_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses what it deprecates itself (std::stable_sort), and clang blames the caller.
  target_compile_options(layerfarm_options INTERFACE -Wthread-safety -Wno-deprecated-declarations)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(layerfarm_options INTERFACE _GLIBCXX_ASSERTIONS)
else()
  target_compile_options(layerfarm_options INTERFACE -U_FORTIFY_SOURCE)
  if(NOT LAYERFARM_SANITIZE)
    target_compile_definitions(layerfarm_options INTERFACE _FORTIFY_SOURCE=3)
  endif()
endif()

if(LAYERFARM_SANITIZE)
  set(flags "-fsanitize=${LAYERFARM_SANITIZE}" -fno-omit-frame-pointer)
  if(LAYERFARM_SANITIZE MATCHES "undefined")
    list(APPEND flags -fno-sanitize-recover=undefined)
  endif()
  if(LAYERFARM_FUZZER)
    list(APPEND flags -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(layerfarm_options INTERFACE ${flags})
  target_link_options(layerfarm_options INTERFACE ${flags})
endif()

if(LAYERFARM_COVERAGE)
  target_compile_options(layerfarm_options INTERFACE --coverage -O0 -fprofile-update=atomic)
  target_link_options(layerfarm_options INTERFACE --coverage)
endif()

find_program(MOLD mold)
if(MOLD)
  target_link_options(layerfarm_options INTERFACE -fuse-ld=mold)
endif()
