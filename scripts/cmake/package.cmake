# What is installed beside the programs and their data (library.cmake), and the packages: `cmake --install`, `cpack`.
# Nothing that is installed names the checkout or a folder of the building machine, and all of it works from any prefix
# (docs/installing.md).

# --- ONNX Runtime: opened at run time from ../lib/layerfarm (base::onnxruntime_library) -----------------------------
file(REAL_PATH "${onnxruntime_root}/lib/libonnxruntime.so.1" onnxruntime_library)
cmake_path(GET onnxruntime_library FILENAME onnxruntime_file)
install(PROGRAMS "${onnxruntime_library}" DESTINATION lib/layerfarm)
# Looked for by the library itself, beside it, where a provider of the older kind is asked for.
install(PROGRAMS "${onnxruntime_root}/lib/libonnxruntime_providers_shared.so" DESTINATION lib/layerfarm OPTIONAL)
set(texts "${PROJECT_BINARY_DIR}/package")
file(MAKE_DIRECTORY "${texts}")
file(CREATE_LINK "${onnxruntime_file}" "${texts}/libonnxruntime.so.1" SYMBOLIC)
install(FILES "${texts}/libonnxruntime.so.1" DESTINATION lib/layerfarm)

# --- texts that the program makes of its own flags -----------------------------------------------------------------
set(program "$<TARGET_FILE:layerfarm>")
add_custom_command(OUTPUT "${texts}/layerfarm" "${texts}/_layerfarm" "${texts}/layerfarm.fish" "${texts}/layerfarm.1"
  COMMAND "${program}" completion bash > "${texts}/layerfarm"
  COMMAND "${program}" completion zsh > "${texts}/_layerfarm"
  COMMAND "${program}" completion fish > "${texts}/layerfarm.fish"
  COMMAND "${program}" man > "${texts}/layerfarm.1"
  DEPENDS layerfarm
  COMMENT "Completions and manual page"
  VERBATIM)
add_custom_target(layerfarm_texts ALL DEPENDS "${texts}/layerfarm")
# bash, fish and man look for a file that is called as the command; zsh reads the names in it.
file(CREATE_LINK layerfarm "${texts}/torq-gen-config" SYMBOLIC)
file(CREATE_LINK layerfarm.fish "${texts}/torq-gen-config.fish" SYMBOLIC)
file(CREATE_LINK layerfarm.1 "${texts}/torq-gen-config.1" SYMBOLIC)
install(FILES "${texts}/layerfarm" "${texts}/torq-gen-config" DESTINATION share/bash-completion/completions)
install(FILES "${texts}/_layerfarm" DESTINATION share/zsh/vendor-completions)
install(FILES "${texts}/layerfarm.fish" "${texts}/torq-gen-config.fish" DESTINATION share/fish/vendor_completions.d)
install(FILES "${texts}/layerfarm.1" "${texts}/torq-gen-config.1" DESTINATION share/man/man1)

# --- licences of what the programs carry: linked in statically, compiled in from headers, or lying beside them --------
set(licences share/doc/layerfarm/licenses)
set(packages "${LAYERFARM_DEPS_deps}/${LAYERFARM_PYTHON_FOLDER}/site-packages")
install(FILES "${PROJECT_SOURCE_DIR}/scripts/package/copyright" DESTINATION share/doc/layerfarm)
file(GLOB onnx_licences "${packages}/onnx-*.dist-info/licenses/*")
if(NOT onnx_licences)
  message(FATAL_ERROR "the licence of ONNX is not in ${packages}")
endif()
install(FILES ${onnx_licences} DESTINATION "${licences}/onnx")
if(DEFINED ENV{ONNXRUNTIME_ROOT})
  set(notices "${onnxruntime_root}")
else()
  set(notices "${LAYERFARM_DEPS_deps}/${LAYERFARM_FOLDER_quantize}/site-packages/onnxruntime")
endif()
install(FILES "${notices}/LICENSE" "${notices}/ThirdPartyNotices.txt" DESTINATION "${licences}/onnxruntime")
foreach(package IN ITEMS cppzmq-dev libboost-dev libcli11-dev libexpected-dev libmsgpack-cxx-dev libsqlitecpp-dev
    libvalijson-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libtbb-dev libprotobuf-dev)
  install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${licences}" RENAME "${package}")
endforeach()

# --- packages --------------------------------------------------------------------------------------------------------
set(CPACK_PACKAGE_NAME layerfarm)
set(CPACK_PACKAGE_VENDOR layerfarm)
set(CPACK_PACKAGE_CONTACT "the layerfarm authors <layerfarm@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds the executor of an accelerator chip that runs each layer of a model right")
set(CPACK_PACKAGE_DESCRIPTION "A batch scheduler that compiles and runs every layer of an ONNX model on every executor of a chip,
with real toolchains, judges the results against a reference, and writes the assignment for a compiler.
Toolchains are installed by name: layerfarm toolchains install NAME.")
set(CPACK_GENERATOR DEB TZST)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_FILE_NAME "layerfarm-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# What the programs are linked with, at the versions that they need.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For `layerfarm toolchains install` and what it installs; all else runs without.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3 (>= 3.11), python3-venv, ca-certificates")
include(CPack)
