# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# ISOSCALE_CUDA_FOUND: whether libisoscale_cuda.so can be built. It needs nvcc, the CUDA runtime,
# cuBLASLt and NCCL, and no GPU. One line says what was found, or what is missing; the scripts read
# that from ISOSCALE_CUDA_MISSING in the cache.
set(ISOSCALE_CUDA AUTO CACHE STRING "The CUDA executor: AUTO builds it where CUDA and NCCL are")
set_property(CACHE ISOSCALE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ISOSCALE_CUDA_FOUND OFF)

function(isoscale_no_cuda reason)
  set(ISOSCALE_CUDA_MISSING "${reason}" CACHE INTERNAL "why there is no CUDA executor")
  if(ISOSCALE_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA executor: not built (${reason})")
  else()
    message(FATAL_ERROR "ISOSCALE_CUDA=ON, but ${reason}")
  endif()
endfunction()

# Ampere, Hopper and Blackwell, as far as this nvcc knows them: machine code of each, and for
# newer ones code that the driver compiles.
function(isoscale_cuda_architectures nvcc result)
  execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  set(architectures "")
  foreach(architecture 80 90 100)
    if(known MATCHES "compute_${architecture}")
      list(TRANSFORM architectures REPLACE "^[0-9]+$" "\\0-real")
      list(APPEND architectures ${architecture})
    endif()
  endforeach()
  set(${result} "${architectures}" PARENT_SCOPE)
endfunction()

macro(isoscale_find_cuda)
  if(CMAKE_CUDA_COMPILER)
    set(nvcc ${CMAKE_CUDA_COMPILER})
  elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
    get_filename_component(nvcc "$ENV{CUDACXX}" PROGRAM)  # CMake takes it, and options after it
  else()
    find_program(ISOSCALE_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda
      PATH_SUFFIXES bin)
    mark_as_advanced(ISOSCALE_NVCC)
    set(nvcc ${ISOSCALE_NVCC})
    set(CMAKE_CUDA_COMPILER ${ISOSCALE_NVCC})
  endif()
  if(NOT nvcc)
    isoscale_no_cuda("there is no nvcc: install the CUDA Toolkit, 12 or newer (package cuda-toolkit of NVIDIA, or \
module load cuda), or set CUDACXX to its path")
    return()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND "$ENV{CUDAARCHS}" STREQUAL "")
    isoscale_cuda_architectures("${nvcc}" CMAKE_CUDA_ARCHITECTURES)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      isoscale_no_cuda("'${nvcc} --list-gpu-arch' names none of 80, 90 and 100: CUDA 12 or newer \
is needed")
      return()
    endif()
  endif()
  # Kernels and the rest include the same C++ headers: of one compiler, unless this nvcc refuses it.
  # Wrappers of MPI depend on the environment: with them, nvcc takes its own.
  get_filename_component(compiler ${CMAKE_CXX_COMPILER} NAME)
  if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND "$ENV{CUDAHOSTCXX}$ENV{NVCC_CCBIN}" STREQUAL ""
      AND NOT "$ENV{CUDACXX} $ENV{CUDAFLAGS} ${CMAKE_CUDA_FLAGS}" MATCHES "-ccbin|--compiler-bindir"
      AND NOT compiler MATCHES "^mpi")
    execute_process(COMMAND ${nvcc} -ccbin ${CMAKE_CXX_COMPILER} -x cu -E /dev/null
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
    endif()
  endif()
  # Tried apart first: a compiler that does not work must not end the whole configuration.
  if(ISOSCALE_CUDA STREQUAL "AUTO" AND NOT ISOSCALE_CUDA_WORKS)
    set(trial ${PROJECT_BINARY_DIR}/cuda_trial)
    file(WRITE ${trial}/CMakeLists.txt
      "cmake_minimum_required(VERSION 3.25)\nproject(trial LANGUAGES CUDA)\n")
    file(WRITE ${trial}/settings.cmake "")
    foreach(variable CMAKE_MAKE_PROGRAM CMAKE_CUDA_COMPILER CMAKE_CUDA_HOST_COMPILER
        CMAKE_CUDA_FLAGS CMAKE_CUDA_ARCHITECTURES)
      if(DEFINED ${variable})
        file(APPEND ${trial}/settings.cmake
          "set(${variable} [==[${${variable}}]==] CACHE STRING \"\")\n")
      endif()
    endforeach()
    execute_process(
      COMMAND ${CMAKE_COMMAND} --fresh -G "${CMAKE_GENERATOR}" -C ${trial}/settings.cmake
        -S ${trial} -B ${trial}/build
      RESULT_VARIABLE failed OUTPUT_FILE ${trial}/log.txt ERROR_FILE ${trial}/log.txt)
    if(failed)
      isoscale_no_cuda("${nvcc} does not work: see ${trial}/log.txt")
      return()
    endif()
    set(ISOSCALE_CUDA_WORKS ON CACHE INTERNAL "the CUDA compiler was tried")
  endif()
  enable_language(CUDA)
  # Kept, so that later configurations ask the same nvcc.
  set(CMAKE_CUDA_COMPILER ${CMAKE_CUDA_COMPILER} CACHE FILEPATH "CUDA compiler")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    isoscale_no_cuda("CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: 12 or newer is needed")
    return()
  endif()
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know yet that nvcc has C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # named as a target below, where linkers find it
  find_package(CUDAToolkit QUIET)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME
    ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(NCCL_LIBRARY nccl HINTS ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME
    ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  if(NOT TARGET CUDA::cudart_static OR NOT TARGET CUDA::cublasLt)
    isoscale_no_cuda("the CUDA Toolkit beside ${CMAKE_CUDA_COMPILER} lacks its runtime or cuBLAS")
    return()
  endif()
  if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
    isoscale_no_cuda("there is no NCCL: install it (package libnccl-dev of NVIDIA, or module load nccl), or name its \
folder with -DNCCL_ROOT=DIR")
    return()
  endif()
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3"
    nccl_version "${nccl_lines}")
  if(nccl_version VERSION_LESS 2.18)
    isoscale_no_cuda("NCCL ${nccl_version} is too old: 2.18 or newer is needed")
    return()
  endif()
  add_library(isoscale_nccl INTERFACE)
  target_include_directories(isoscale_nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
  target_link_libraries(isoscale_nccl INTERFACE ${NCCL_LIBRARY})
  set(ISOSCALE_CUDA_FOUND ON)
  set(ISOSCALE_CUDA_MISSING "" CACHE INTERNAL "why there is no CUDA executor")
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
  message(STATUS "CUDA executor: CUDA ${CUDAToolkit_VERSION}, NCCL ${nccl_version}, "
    "for sm ${architectures}")
endmacro()

if(ISOSCALE_MPI AND NOT ISOSCALE_CUDA STREQUAL "OFF")
  isoscale_find_cuda()
elseif(ISOSCALE_CUDA STREQUAL "ON")
  isoscale_no_cuda("ISOSCALE_MPI is off, and the executor needs MPI")
else()
  set(ISOSCALE_CUDA_MISSING "ISOSCALE_CUDA or ISOSCALE_MPI is off" CACHE INTERNAL
    "why there is no CUDA executor")
endif()
