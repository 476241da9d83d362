# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Writes fingerprint.hpp: one text for all headers that the core and its plugins may share, since
# C++ types pass between them, and a plugin that saw other types would crash. It covers every header
# that layering lets a plugin include but the plugin's own. Runs at every build; the file is left
# alone when its content stays.
#
# cmake -DSOURCE_DIR=... -DOUTPUT=... -DISOSCALE_VERSION=... -P fingerprint.cmake

cmake_minimum_required(VERSION 3.22)

set(patterns src workloads results)
list(TRANSFORM patterns REPLACE "(.+)" "${SOURCE_DIR}/\\1/*.hpp")
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR} ${patterns})
list(FILTER headers EXCLUDE REGEX "^src/executor/cuda/")
if(NOT headers)
  message(FATAL_ERROR "no header was found below ${SOURCE_DIR}")
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
