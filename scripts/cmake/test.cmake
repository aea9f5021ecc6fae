# layerfarm_test(LABEL NAME SOURCES ... [DEPENDS ...] [TIMEOUT SECONDS] [SERIAL])
#
# A doctest program; each TEST_CASE becomes a ctest test LABEL.NAME.<sentence> with the label LABEL. tests/support gives
# main(). SERIAL: nothing else runs beside these tests (they measure time, or fill the machine).
function(layerfarm_test label name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SERIAL" "TIMEOUT" "SOURCES;DEPENDS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(LAYERFARM_SANITIZE OR LAYERFARM_COVERAGE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  string(REPLACE "." "_" target "${label}_${name}_test")
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")
  layerfarm_link(${target} PRIVATE ${arg_DEPENDS} test_main test_support)
  target_link_libraries(${target} PRIVATE layerfarm_options)

  set(tests "${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake")
  # doctest succeeds when its filter matches nothing; that would hide a test that is never run.
  set(properties "LABELS;${label};TIMEOUT;${arg_TIMEOUT};FAIL_REGULAR_EXPRESSION;test cases: +0 ")
  if(arg_SERIAL)
    list(APPEND properties "RUN_SERIAL;TRUE")
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D "PROGRAM=$<TARGET_FILE:${target}>" -D "PREFIX=${label}.${name}."
      -D "WORK_DIR=${CMAKE_CURRENT_BINARY_DIR}" -D "PROPERTIES=${properties}" -D "OUTPUT=${tests}"
      -P "${PROJECT_SOURCE_DIR}/scripts/cmake/list_tests.cmake"
    BYPRODUCTS "${tests}"
    VERBATIM)
  layerfarm_include_tests("${tests}" "${target}")
endfunction()

# layerfarm_script_test(LABEL NAME SCRIPT [TIMEOUT SECONDS] [ARGS ...]): a Python script as one test; exit code 0 passes.
function(layerfarm_script_test label name script)
  cmake_parse_arguments(PARSE_ARGV 3 arg "SERIAL" "TIMEOUT" "ARGS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME "${label}.${name}" COMMAND /usr/bin/python3 "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${arg_ARGS})
  set_tests_properties("${label}.${name}" PROPERTIES LABELS "${label}" TIMEOUT "${arg_TIMEOUT}"
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;LAYERFARM_BIN=${PROJECT_BINARY_DIR}/bin;LAYERFARM_TEST_BIN=${PROJECT_BINARY_DIR}/tests/bin")
  if(arg_SERIAL)
    set_tests_properties("${label}.${name}" PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

# layerfarm_fuzz(NAME SOURCES ... [DEPENDS ...])
#
# SOURCES define LLVMFuzzerTestOneInput. In the preset fuzz it is a libFuzzer program; in all others tests/support gives
# a main() that replays tests/fuzz/corpus/NAME and seeded changes of it, so every test run covers what fuzzing found.
function(layerfarm_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  set(target fuzz_${name})
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  layerfarm_link(${target} PRIVATE ${arg_DEPENDS})
  target_link_libraries(${target} PRIVATE layerfarm_options)
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(LAYERFARM_FUZZER)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set(found "${CMAKE_CURRENT_BINARY_DIR}/corpus_${name}")
    file(MAKE_DIRECTORY "${found}")
    set(command ${target} -runs=50000 -seed=1 -timeout=20 "${found}")
    if(EXISTS "${corpus}")
      list(APPEND command "${corpus}")
    endif()
  else()
    layerfarm_link(${target} PRIVATE fuzz_replay)
    set(command ${target} "${corpus}")
  endif()
  add_test(NAME "fuzz.${name}" COMMAND ${command})
  set_tests_properties("fuzz.${name}" PROPERTIES LABELS fuzz TIMEOUT 600)
endfunction()

# Tells ctest about tests that are known only once the program is built; until then the program counts as one failed test.
function(layerfarm_include_tests tests target)
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(CONFIGURE OUTPUT "${include}" CONTENT [[
if(EXISTS "@tests@")
  include("@tests@")
else()
  add_test(@target@_NOT_BUILT @target@_NOT_BUILT)
endif()
]] @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
