# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Writes fingerprint.hpp: one text for all headers that the core and its plugins must agree on, to
# the letter, since C++ types pass between them. Runs at every build; the file is left alone when
# its content stays.
#
# cmake -DSOURCE_DIR=... -DOUTPUT=... -DISOSCALE_VERSION=... -P fingerprint.cmake

cmake_minimum_required(VERSION 3.22)

# Every header that the plugin includes, directly or through others, and that is not its own.
file(GLOB queue RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/src/executor/cuda/*.?pp
  ${SOURCE_DIR}/src/executor/cuda/kernels/*.hpp ${SOURCE_DIR}/src/executor/cuda/kernels/*.cu*)
set(headers "")
while(queue)
  list(POP_FRONT queue source)
  file(STRINGS ${SOURCE_DIR}/${source} includes REGEX "^#include \"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" include "${include}")
    foreach(header src/${include} ${include})
      if(EXISTS ${SOURCE_DIR}/${header} AND NOT header IN_LIST headers
         AND NOT header MATCHES "^src/executor/cuda/")
        list(APPEND headers ${header})
        list(APPEND queue ${header})
      endif()
    endforeach()
  endforeach()
endwhile()
list(SORT headers)
if(NOT headers)
  message(FATAL_ERROR "no header of the plugin was found below ${SOURCE_DIR}")
endif()
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 ${SOURCE_DIR}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${all}")
string(SUBSTRING "${fingerprint}" 0 16 fingerprint)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Generated: see src/cmake/fingerprint.cmake.
#pragma once

namespace isoscale::executor {

inline constexpr const char* interface_fingerprint = "@ISOSCALE_VERSION@, interface @fingerprint@";

}  // namespace isoscale::executor
]])
