# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Writes fingerprint.hpp: one text for all headers that the core and its plugins must agree on, to
# the letter, since C++ types pass between them. Runs at every build; the file is left alone when
# its content stays.
#
# cmake -DSOURCE_DIR=... -DOUTPUT=... -DISOSCALE_VERSION=... -P fingerprint.cmake

file(GLOB headers RELATIVE ${SOURCE_DIR}
  ${SOURCE_DIR}/src/units/*.hpp ${SOURCE_DIR}/src/base/*.hpp ${SOURCE_DIR}/src/mesh/*.hpp
  ${SOURCE_DIR}/src/program/*.hpp ${SOURCE_DIR}/src/timeline/*.hpp ${SOURCE_DIR}/src/machine/*.hpp
  ${SOURCE_DIR}/src/comm/*.hpp ${SOURCE_DIR}/src/executor/*.hpp ${SOURCE_DIR}/src/config/*.hpp
  ${SOURCE_DIR}/workloads/*.hpp ${SOURCE_DIR}/workloads/bench/*.hpp)
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
