# layerfarm_library(NAME [SOURCES ...] [HEADERS ...] [DEPENDS ...] [PRIVATE_DEPENDS ...])
#
# The library of the current folder: static target layerfarm_NAME, alias layerfarm::NAME. Without SOURCES and HEADERS it
# takes all *.cpp (but main.cpp) and *.h of the folder and below, so a new file needs no edit here. Includes start at
# the project root: #include "shared/base/result.h".
#
# DEPENDS (seen by users of the headers) and PRIVATE_DEPENDS take bare names of our own libraries (base, domain,
# coordinator_core ...) and target names with "::" (deps::json).
function(layerfarm_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS")
  layerfarm_sources(sources headers "${CMAKE_CURRENT_SOURCE_DIR}")
  if(arg_SOURCES)
    set(sources ${arg_SOURCES})
  endif()
  if(arg_HEADERS)
    set(headers ${arg_HEADERS})
  endif()
  if(NOT sources)
    # An archive needs a member; a folder may be headers only, or not filled yet.
    set(sources "${PROJECT_BINARY_DIR}/generated/empty.cpp")
    file(CONFIGURE OUTPUT "${sources}" CONTENT "// Nothing here yet.\n")
  endif()

  set(target layerfarm_${name})
  add_library(${target} STATIC ${sources})
  add_library(layerfarm::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  layerfarm_link(${target} PUBLIC ${arg_DEPENDS})
  layerfarm_link(${target} PRIVATE ${arg_PRIVATE_DEPENDS})
  target_link_libraries(${target} PRIVATE layerfarm_options)
endfunction()

# layerfarm_program(NAME MAIN.cpp DEPENDS ...): a program in the build's bin folder; none while MAIN is not written yet.
function(layerfarm_program name main)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "DEPENDS")
  file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${main}")
  if(NOT found)
    return()
  endif()
  add_executable(${name} ${main})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  layerfarm_link(${name} PRIVATE ${arg_DEPENDS})
  target_link_libraries(${name} PRIVATE layerfarm_options)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# layerfarm_other_name(PROGRAM NAME): a second name under which the program is called, a link beside it.
function(layerfarm_other_name program name)
  if(NOT TARGET ${program})
    return()
  endif()
  add_custom_command(TARGET ${program} POST_BUILD VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E create_symlink ${program} "$<TARGET_FILE_DIR:${program}>/${name}")
  install(FILES "$<TARGET_FILE_DIR:${program}>/${name}" DESTINATION bin)
endfunction()

# layerfarm_data(FOLDER NAME): files that a program reads at run time. They are found beside the program, in
# ../share/layerfarm/NAME, in a build folder as in an installation, so that no path of this machine is compiled in.
function(layerfarm_data folder name)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/layerfarm")
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
  file(CREATE_LINK "${source}" "${PROJECT_BINARY_DIR}/share/layerfarm/${name}" SYMBOLIC)
  if(EXISTS "${source}")
    install(DIRECTORY "${source}/" DESTINATION "share/layerfarm/${name}" PATTERN "__pycache__" EXCLUDE)
  endif()
endfunction()

# layerfarm_data_files(NAME FILE...): the same for single files.
function(layerfarm_data_files name)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/layerfarm/${name}")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
    cmake_path(GET source FILENAME short)
    file(CREATE_LINK "${source}" "${PROJECT_BINARY_DIR}/share/layerfarm/${name}/${short}" SYMBOLIC)
    install(FILES "${source}" DESTINATION "share/layerfarm/${name}")
  endforeach()
endfunction()

# --- used by the above and by test.cmake ---------------------------------------------------------------------------

# Sources (but main.cpp) and headers of a folder and what is below it.
function(layerfarm_sources sources_out headers_out folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${folder}/*.h")
  set(${sources_out} "${sources}" PARENT_SCOPE)
  set(${headers_out} "${headers}" PARENT_SCOPE)
endfunction()

# Links bare names as ours. A name with "::" that nothing defines is an error of CMake's own, so a typo cannot become
# a silent -lNAME.
function(layerfarm_link target scope)
  foreach(name IN LISTS ARGN)
    if(NOT name MATCHES "::")
      set(name "layerfarm::${name}")
    endif()
    target_link_libraries(${target} ${scope} "${name}")
  endforeach()
endfunction()
