# layerfarm::build_info: the generated header "shared/base/build_info.h". A library of its own and not a part of base,
# because the commit changes often: only what links this is linked anew then.
set(generated "${PROJECT_BINARY_DIR}/generated")
configure_file("${CMAKE_CURRENT_LIST_DIR}/build_info.h.in" "${generated}/shared/base/build_info.h" @ONLY)

# At build time, since a commit does not make CMake configure again; rewritten only when the text changes.
add_custom_target(layerfarm_commit
  COMMAND ${CMAKE_COMMAND} -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "OUTPUT=${generated}/build_commit.cpp"
    -P "${CMAKE_CURRENT_LIST_DIR}/write_commit.cmake"
  BYPRODUCTS "${generated}/build_commit.cpp"
  COMMENT ""
  VERBATIM)

add_library(layerfarm_build_info STATIC "${generated}/build_commit.cpp")
add_library(layerfarm::build_info ALIAS layerfarm_build_info)
add_dependencies(layerfarm_build_info layerfarm_commit)
target_include_directories(layerfarm_build_info PUBLIC "${generated}")
target_link_libraries(layerfarm_build_info PRIVATE layerfarm_options)

# Read by scripts/layerfarm: what must be there for this build to run.
string(REPLACE ";" "\n" runtime_folders "${LAYERFARM_PYTHON_FOLDER};${LAYERFARM_TOOLCHAIN_FOLDERS}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/runtime_folders.txt" CONTENT "@runtime_folders@\n")
if(NOT DEFINED ENV{ONNXRUNTIME_ROOT})
  file(APPEND "${PROJECT_BINARY_DIR}/runtime_folders.txt" "${LAYERFARM_DEPS_onnxruntime}\n")
endif()
