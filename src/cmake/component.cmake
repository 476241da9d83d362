# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Warnings and sanitizers, on every target of ours and on nobody else's.
add_library(isoscale_flags INTERFACE)
target_compile_options(isoscale_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;$<$<BOOL:${ISOSCALE_WERROR}>:-Werror>>")
# Joined, sources see each other's names, and none is what GCC takes for the main one.
if(NOT CMAKE_UNITY_BUILD)
  target_compile_options(isoscale_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(isoscale_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects its garbage only beyond 1 GiB (128 MiB by default): an eighth less time to compile,
  # and 300 MB more memory for the largest source.
  target_compile_options(isoscale_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlap in "literal" + string that is not there (GCC bug 105651), and an empty
  # optional read where it was tested (GCC bug 80635).
  target_compile_options(isoscale_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized>")
endif()
if(ISOSCALE_NATIVE)
  target_compile_options(isoscale_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(ISOSCALE_SANITIZE)
  # No recovery: undefined behaviour must fail a test, not only print. Without the checks of each
  # pointer that is followed: they double the time to compile, and a wrong one ends a test anyway.
  target_compile_options(isoscale_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ISOSCALE_SANITIZE};-fno-sanitize=null,alignment,object-size;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(isoscale_flags INTERFACE -fsanitize=${ISOSCALE_SANITIZE})
endif()
if(ISOSCALE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ISOSCALE_FUZZ needs Clang: -DCMAKE_CXX_COMPILER=clang++-16")
  endif()
  target_compile_options(isoscale_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link,address;-fno-omit-frame-pointer>")
  target_link_options(isoscale_flags INTERFACE -fsanitize=address)
endif()
target_include_directories(isoscale_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})

# isoscale_precompile(TARGET LIBRARIES HEADERS): what nearly all sources include, compiled once, for
# other targets with the same options (REUSE_FROM TARGET). Only where sources are joined: one by one
# they must show the #include that they lack. ccache knows a source by the text of all it includes,
# and has no use for this.
set(isoscale_precompiles OFF)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(isoscale_precompiles ON)
endif()
function(isoscale_precompile TARGET LIBRARIES HEADERS)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  target_sources(${TARGET} PRIVATE ${source})
  set_target_properties(${TARGET} PROPERTIES EXCLUDE_FROM_ALL ON)
  target_link_libraries(${TARGET} PRIVATE ${LIBRARIES})
  target_precompile_headers(${TARGET} PRIVATE ${HEADERS})
endfunction()
set(isoscale_precompiled_headers
  <algorithm> <array> <cmath> <cstddef> <cstdint> <filesystem> <functional> <map> <numeric>
  <optional> <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>
  <fmt/ranges.h>)

# The preset compiles with -O2, which takes an eighth less than -O3. The components whose loops over
# elements and ops are measured or simulated get -O3. Components that only collect, store and print
# get -Og, 10 to 30% less again, as do those that take no longer with it: a report of 71 MB and a
# search take as long as before. Another level that was asked for is kept.
set(isoscale_loop_options "")
set(isoscale_cold_options "")
if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O2")
  set(isoscale_loop_options $<$<CONFIG:Release>:-O3>)
  set(isoscale_cold_options $<$<CONFIG:Release>:-Og>)
endif()
set(isoscale_cold_components
  analysis analysis_advice analysis_catalog analysis_compare analysis_devices analysis_efficiency
  analysis_merge analysis_microbench analysis_page analysis_predict analysis_render analysis_traces
  calibration config machine preflight results_hdf5 results_reader results_records results_writer runner
  runner_plan runner_serving runner_watch settings workloads workloads_algorithms workloads_calibrate
  workloads_collectives workloads_gemm workloads_infer workloads_memory workloads_overlap workloads_p2p
  workloads_serve)

# isoscale_component(NAME SOURCES ... [DEPENDS component ...] [EXTERNAL target ...])
#
# One folder = one static library isoscale_NAME. DEPENDS names the components it may use, and
# tests/layering checks the includes against it. All of them together make libisoscale.so.
function(isoscale_component NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;EXTERNAL" ${ARGN})
  add_library(isoscale_${NAME} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND isoscale_)
  if(NAME IN_LIST isoscale_cold_components)
    target_compile_options(isoscale_${NAME} PRIVATE ${isoscale_cold_options})
  endif()
  target_link_libraries(isoscale_${NAME} PUBLIC isoscale_flags ${ARG_DEPENDS} ${ARG_EXTERNAL})
  if(isoscale_precompiles)
    if(NOT TARGET isoscale_precompiled)
      add_library(isoscale_precompiled OBJECT)
      isoscale_precompile(isoscale_precompiled "isoscale_flags;fmt::fmt"
        "${isoscale_precompiled_headers}")
    endif()
    target_precompile_headers(isoscale_${NAME} REUSE_FROM isoscale_precompiled)
  endif()
  set_property(GLOBAL APPEND PROPERTY ISOSCALE_COMPONENTS isoscale_${NAME})
  set_property(GLOBAL APPEND PROPERTY ISOSCALE_EXTERNALS ${ARG_EXTERNAL})
endfunction()
