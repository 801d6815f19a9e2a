# libtorch, out of the wheel in WEIR_TORCH. The tree uses this file and so does the installed package, for
# users meet the same trap: the wheel's include folder holds its own old copies of protobuf and fmt,
# which must lose against the system's. Hence -idirafter, which no find_package of torch gives.

# weir_torch_version(VARIABLE): such as 2.13.0; empty where there is no wheel.
function(weir_torch_version variable)
  set(version "")
  if(EXISTS "${WEIR_TORCH}/version.py" AND EXISTS "${WEIR_TORCH}/lib/libtorch.so")
    file(STRINGS "${WEIR_TORCH}/version.py" version REGEX "^__version__ = ")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# Defines weir::torch. CMake adds the rpath by itself, for libraries that are named by path.
function(weir_add_torch)
  if(TARGET weir::torch)
    return()
  endif()
  add_library(weir::torch INTERFACE IMPORTED)
  target_compile_options(weir::torch INTERFACE
    "SHELL:-idirafter ${WEIR_TORCH}/include"
    "SHELL:-idirafter ${WEIR_TORCH}/include/torch/csrc/api/include")
  target_link_libraries(weir::torch INTERFACE
    -Wl,--no-as-needed
    ${WEIR_TORCH}/lib/libtorch.so ${WEIR_TORCH}/lib/libtorch_cpu.so ${WEIR_TORCH}/lib/libc10.so)
endfunction()
