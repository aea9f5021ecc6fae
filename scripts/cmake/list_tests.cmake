cmake_minimum_required(VERSION 3.25)
# Run after a test program was linked, with PROGRAM, PREFIX, WORK_DIR, PROPERTIES, OUTPUT: asks the program for its test
# cases and writes them down for ctest. (doctest's own script loses names with brackets or semicolons, and sets LABELS
# a second time.)
execute_process(COMMAND "${PROGRAM}" --list-test-cases --no-intro=true --no-version=true
  WORKING_DIRECTORY "${WORK_DIR}" OUTPUT_VARIABLE output RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} cannot list its test cases: ${failed}\n${output}")
endif()

# Characters that CMake's lists would split at or swallow travel as words.
string(REPLACE "[" "<open>" output "${output}")
string(REPLACE "]" "<close>" output "${output}")
string(REPLACE ";" "<semicolon>" output "${output}")
string(REPLACE "\\" "<backslash>" output "${output}")
string(REPLACE "\n" ";" lines "${output}")

set(script "")
set(names "")
foreach(line IN LISTS lines)
  if(line STREQUAL "" OR line MATCHES "^=+$" OR line MATCHES "^<open>doctest<close>")
    continue()
  endif()
  if(line IN_LIST names)
    message(FATAL_ERROR "two test cases of ${PROGRAM} have the same name: ${line}")
  endif()
  list(APPEND names "${line}")
  # doctest splits its filter at commas and takes * and ? as wildcards; what ? stands for here is unlikely to clash.
  string(REPLACE "<backslash>" "?" filter "${line}")
  string(REPLACE "," "\\," filter "${filter}")
  foreach(text IN ITEMS line filter)
    string(REPLACE "<open>" "[" ${text} "${${text}}")
    string(REPLACE "<close>" "]" ${text} "${${text}}")
    string(REPLACE "<semicolon>" ";" ${text} "${${text}}")
    string(REPLACE "<backslash>" "/" ${text} "${${text}}")
  endforeach()
  string(APPEND script
    "add_test([==[${PREFIX}${line}]==] [==[${PROGRAM}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties([==[${PREFIX}${line}]==] PROPERTIES WORKING_DIRECTORY [==[${WORK_DIR}]==]")
  set(pairs ${PROPERTIES})
  while(pairs)
    list(POP_FRONT pairs key value)
    string(APPEND script " ${key} [==[${value}]==]")
  endwhile()
  string(APPEND script ")\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
