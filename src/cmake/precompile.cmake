# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# The headers that most sources include, compiled once for libraries and once for tests.
set(isoscale_common_headers
  <algorithm> <array> <charconv> <cmath> <cstddef> <cstdint> <filesystem> <functional> <limits>
  <map> <memory> <numeric> <optional> <set> <span> <string> <string_view> <tuple> <utility>
  <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# isoscale_precompiled(KIND LIBRARIES target ... HEADERS header ... [OPTIONS option ...]): what
# isoscale_precompile() then gives to targets of this KIND, which are compiled with the same options.
function(isoscale_precompiled KIND)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;HEADERS;OPTIONS" ${ARGN})
  if(NOT ISOSCALE_PRECOMPILE)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${KIND}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// What precompiled headers hang on.\n")
  add_library(isoscale_precompiled_${KIND} OBJECT ${source})
  target_link_libraries(isoscale_precompiled_${KIND} PRIVATE isoscale_flags fmt::fmt ${ARG_LIBRARIES})
  target_compile_options(isoscale_precompiled_${KIND} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(isoscale_precompiled_${KIND} PRIVATE ${ARG_HEADERS})
endfunction()

# isoscale_precompile(TARGET KIND): compiles TARGET on the headers of KIND, where ISOSCALE_PRECOMPILE asks for it.
function(isoscale_precompile TARGET KIND)
  if(ISOSCALE_PRECOMPILE)
    target_precompile_headers(${TARGET} REUSE_FROM isoscale_precompiled_${KIND})
  endif()
endfunction()

isoscale_precompiled(LIBRARY HEADERS ${isoscale_common_headers})
