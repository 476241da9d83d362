# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Python3::Interpreter for the tests' scripts. Some read run files with h5py, which the packages
# give to the system's Python: that one is taken before another Python that comes first in PATH.
if(NOT Python3_EXECUTABLE AND NOT Python3_ROOT_DIR AND EXISTS /usr/bin/python3)
  execute_process(COMMAND /usr/bin/python3 -c "import h5py"
    RESULT_VARIABLE without_h5py OUTPUT_QUIET ERROR_QUIET)
  if(without_h5py EQUAL 0)
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
