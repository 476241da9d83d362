# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# libisoscale.so holds every component once, whole; the program and the device plugins share it, so
# that no type (an exception, above all) exists twice in a process.
get_property(components GLOBAL PROPERTY ISOSCALE_COMPONENTS)
get_property(externals GLOBAL PROPERTY ISOSCALE_EXTERNALS)
list(REMOVE_DUPLICATES externals)
set(component_objects ${components})
list(TRANSFORM component_objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
add_library(isoscale_core SHARED ${component_objects})
set_target_properties(isoscale_core PROPERTIES OUTPUT_NAME isoscale LINKER_LANGUAGE CXX)
target_link_libraries(isoscale_core PUBLIC isoscale_flags ${externals})

# The program: a thin main over libisoscale.so.
