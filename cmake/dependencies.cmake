# Everything that Weir links. libtorch comes from the wheel and is added with -idirafter: its include
# folder holds its own old copies of protobuf and fmt, which must lose against the system's.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
if(WEIR_RPC)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
endif()

if(NOT WEIR_TORCH)
  file(GLOB torch_candidates "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  if(NOT torch_candidates)
    message(FATAL_ERROR "no torch wheel in .venv: run `make setup`, or set -DWEIR_TORCH=<site-packages>/torch")
  endif()
  list(GET torch_candidates 0 WEIR_TORCH)
endif()
add_library(weir_torch INTERFACE)
target_compile_options(weir_torch INTERFACE
  "SHELL:-idirafter ${WEIR_TORCH}/include"
  "SHELL:-idirafter ${WEIR_TORCH}/include/torch/csrc/api/include")
target_link_libraries(weir_torch INTERFACE
  -Wl,--no-as-needed
  ${WEIR_TORCH}/lib/libtorch.so ${WEIR_TORCH}/lib/libtorch_cpu.so ${WEIR_TORCH}/lib/libc10.so)
set(CMAKE_BUILD_RPATH ${WEIR_TORCH}/lib)

add_library(weir_asio INTERFACE)
target_compile_definitions(weir_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED
  "$<$<CXX_COMPILER_ID:Clang>:ASIO_HAS_CO_AWAIT=1;ASIO_HAS_STD_COROUTINE=1>")
target_compile_options(weir_asio INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
target_link_libraries(weir_asio INTERFACE Threads::Threads)
