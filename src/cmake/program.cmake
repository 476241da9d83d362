# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# libisoscale.so holds every component once; the program and the device plugins share it, so that
# no type (an exception, above all) exists twice in a process.
get_property(components GLOBAL PROPERTY ISOSCALE_COMPONENTS)
add_library(isoscale_core SHARED)
set_target_properties(isoscale_core PROPERTIES OUTPUT_NAME isoscale LINKER_LANGUAGE CXX)
target_link_libraries(isoscale_core PUBLIC isoscale_flags)
foreach(component IN LISTS components)
  target_link_libraries(isoscale_core PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${component}>)
endforeach()
