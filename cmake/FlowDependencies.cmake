# Finds the packages flow is built with. Each optional one has a switch FLOW_<NAME> of AUTO, ON or
# OFF: AUTO takes the package when it is there, ON insists and names the Debian package to install.
# FLOW_WITH_<NAME> is the outcome; the same word is a compile definition of the sources that ask,
# and never appears in a public header.

find_package(Threads REQUIRED)
find_package(ZLIB)
if(NOT ZLIB_FOUND)
  message(FATAL_ERROR "flow needs zlib: apt-get install zlib1g-dev, or run tools/setup")
endif()
find_package(nlohmann_json 3.10 QUIET)
if(NOT nlohmann_json_FOUND)
  message(FATAL_ERROR "flow needs nlohmann-json: apt-get install nlohmann-json3-dev, or run "
                      "tools/setup")
endif()

# flow_optional(<NAME> <variable that says whether it was found> <what to install>): settles
# FLOW_WITH_<NAME>.
macro(flow_optional name found apt_package)
  if(NOT FLOW_${name})
    set(FLOW_WITH_${name} OFF)
  elseif(${found})
    set(FLOW_WITH_${name} ON)
  elseif(FLOW_${name} STREQUAL "AUTO")
    set(FLOW_WITH_${name} OFF)
  else()
    message(FATAL_ERROR "FLOW_${name} is ON but it was not found: install "
                        "${apt_package}, or configure with -DFLOW_${name}=OFF")
  endif()
  message(STATUS "flow: ${name} ${FLOW_WITH_${name}}")
endmacro()

foreach(name MPI GLOG ONEDNN OPENBLAS KISSFFT CUDA NCCL)
  set(FLOW_${name} AUTO CACHE STRING "Use ${name}: AUTO, ON or OFF")
  set_property(CACHE FLOW_${name} PROPERTY STRINGS AUTO ON OFF)
endforeach()

if(FLOW_MPI)
  find_package(MPI QUIET COMPONENTS C)
endif()
flow_optional(MPI MPI_C_FOUND libopenmpi-dev)
if(FLOW_WITH_MPI)
  set(FLOW_MPI_LIBRARIES MPI::MPI_C)
endif()

if(FLOW_GLOG)
  find_package(glog QUIET)
endif()
flow_optional(GLOG glog_FOUND libgoogle-glog-dev)
if(FLOW_WITH_GLOG)
  set(FLOW_GLOG_LIBRARIES glog::glog)
endif()

# The two BLAS libraries are loaded at run time with dlopen(RTLD_LOCAL), never linked: both export
# cblas symbols, and neither may delay the start of a program that does not multiply. The build
# needs oneDNN's header for its types and takes either library only where its headers are installed.
if(FLOW_ONEDNN)
  find_path(FLOW_ONEDNN_INCLUDE_DIR dnnl.h)
  find_library(FLOW_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(FLOW_ONEDNN_INCLUDE_DIR FLOW_ONEDNN_LIBRARY)
endif()
if(FLOW_ONEDNN_INCLUDE_DIR AND FLOW_ONEDNN_LIBRARY)
  set(flow_onednn_found ON)
endif()
flow_optional(ONEDNN flow_onednn_found libdnnl-dev)

if(FLOW_OPENBLAS)
  find_library(FLOW_OPENBLAS_LIBRARY openblas)
  mark_as_advanced(FLOW_OPENBLAS_LIBRARY)
endif()
flow_optional(OPENBLAS FLOW_OPENBLAS_LIBRARY libopenblas-dev)

# Its C++ header alone is used: there is nothing to link.
if(FLOW_KISSFFT)
  find_path(FLOW_KISSFFT_INCLUDE_DIR kissfft/kissfft.hh)
  mark_as_advanced(FLOW_KISSFFT_INCLUDE_DIR)
endif()
flow_optional(KISSFFT FLOW_KISSFFT_INCLUDE_DIR libkissfft-dev)

# FLOW_CUDA=EMULATED is for tests: device cuda on the CPU, by tests/support/cuda_emulator. The .cu
# files are then compiled as C++.
if(FLOW_CUDA STREQUAL "EMULATED")
  set(FLOW_CUDA_EMULATED ON)
  set(FLOW_CUDA_INCLUDE_DIR ${PROJECT_SOURCE_DIR}/tests/support/cuda_emulator)
  set(FLOW_CUDNN_INCLUDE_DIR ${FLOW_CUDA_INCLUDE_DIR})
  set(FLOW_NCCL_INCLUDE_DIR ${FLOW_CUDA_INCLUDE_DIR})
  set(CUDAToolkit_FOUND ON)
elseif(FLOW_CUDA)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(CUDAToolkit_FOUND AND FLOW_CUDA STREQUAL "AUTO")
    include(CheckLanguage)
    check_language(CUDA)  # a toolkit that does not work with this compiler counts as absent
    if(NOT CMAKE_CUDA_COMPILER)
      set(CUDAToolkit_FOUND OFF)
    endif()
  endif()
endif()
flow_optional(CUDA CUDAToolkit_FOUND
              "the CUDA toolkit (from NVIDIA; tools/setup does not install it)")
if(FLOW_WITH_CUDA AND NOT FLOW_CUDA_EMULATED)
  if(NOT CMAKE_CUDA_ARCHITECTURES AND EXISTS /dev/nvidia0)
    set(CMAKE_CUDA_ARCHITECTURES native)
  elseif(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90-real 100-real 120)
  endif()
  enable_language(CUDA)
  # cuBLASLt is loaded at its first use: linked, it would delay the start of every program.
  list(GET CUDAToolkit_INCLUDE_DIRS 0 FLOW_CUDA_INCLUDE_DIR)
  set(FLOW_CUBLAS_DIR ${CUDAToolkit_LIBRARY_DIR})
  set(FLOW_CUDA_LIBRARIES CUDA::cudart_static)
  # Its headers only: the library is loaded at its first use, too.
  find_path(FLOW_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(FLOW_CUDNN_INCLUDE_DIR)
  if(FLOW_NCCL)
    find_path(FLOW_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(FLOW_NCCL_INCLUDE_DIR)
  endif()
endif()
if(FLOW_WITH_CUDA AND FLOW_NCCL_INCLUDE_DIR)
  set(flow_nccl_found ON)
endif()
flow_optional(NCCL flow_nccl_found "NCCL's header (from NVIDIA), and CUDA")

# Read by core/version.cpp: ranks of one job must have been built alike.
set(FLOW_BUILD_CONFIGURATION
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE}")
foreach(name MPI GLOG ONEDNN OPENBLAS KISSFFT CUDA NCCL)
  if(FLOW_WITH_${name})
    string(APPEND FLOW_BUILD_CONFIGURATION " ${name}")
  endif()
endforeach()
