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
# MPI's C++ bindings come along unasked; needing them would bind the program to one MPI's age.
target_link_options(isoscale_core PUBLIC LINKER:--as-needed)

# The program: a thin main over libisoscale.so.
if(ISOSCALE_MPI)
  set(run_command run_command_mpi.cpp)
else()
  set(run_command run_command_without_mpi.cpp)
endif()
set(program_sources main.cpp report_command.cpp compare_command.cpp predict_command.cpp ${run_command})
list(TRANSFORM program_sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
add_executable(isoscale ${program_sources})
target_compile_options(isoscale PRIVATE ${isoscale_cold_options})
target_link_libraries(isoscale PRIVATE isoscale_core)
