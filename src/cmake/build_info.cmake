# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Writes build_info.cpp. Runs at every build, since the commit may have changed since CMake ran;
# configure_file leaves the file alone when its content stays, so nothing is compiled in vain.
#
# cmake -DSOURCE_DIR=... -DTEMPLATE=... -DOUTPUT=... -DISOSCALE_VERSION=... -DISOSCALE_COMPILER=...
#       -DISOSCALE_BUILD_TYPE=... -P build_info.cmake

function(git result_variable output_variable)
  # No optional locks: a build must never disturb a commit that runs beside it.
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 git ${ARGN}
    WORKING_DIRECTORY ${SOURCE_DIR}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${result_variable} "${result}" PARENT_SCOPE)
  set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()

set(ISOSCALE_GIT_HASH "unknown")
git(found top_level rev-parse --show-toplevel)
if(found EQUAL 0)
  file(REAL_PATH "${top_level}" top_level)
  file(REAL_PATH "${SOURCE_DIR}" source_dir)
  # A copy without history inside somebody else's checkout is not that checkout.
  if(top_level STREQUAL source_dir)
    git(has_commit hash rev-parse --short=12 HEAD)
    git(has_status changes status --porcelain --untracked-files=no)
    if(has_commit EQUAL 0)
      set(ISOSCALE_GIT_HASH "${hash}")
      if(NOT has_status EQUAL 0 OR NOT changes STREQUAL "")
        string(APPEND ISOSCALE_GIT_HASH "-dirty")
      endif()
    endif()
  endif()
endif()
if(ISOSCALE_BUILD_TYPE STREQUAL "")
  set(ISOSCALE_BUILD_TYPE "unknown")
endif()

configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
