# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# The installed tree, which may be moved as a whole. Its folders are fixed: the program looks for
# its plugin in ../lib, and the scripts for their program in ../../../bin.
set(isoscale_installed isoscale isoscale_core)
if(ISOSCALE_CUDA_FOUND)
  list(APPEND isoscale_installed isoscale_cuda)
endif()
# RUNPATH and not RPATH, so that LD_LIBRARY_PATH of a module or a container has the last word. Kept
# are only the folders of libraries that were found outside of the system's.
target_link_options(isoscale_core PUBLIC LINKER:--enable-new-dtags)
set_target_properties(${isoscale_installed} PROPERTIES
  BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH_USE_LINK_PATH ON INSTALL_RPATH "$ORIGIN")
set_target_properties(isoscale PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS ${isoscale_installed} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)

# Completions are what the program itself says.
if(NOT CMAKE_CROSSCOMPILING)
  set(completion_files "")
  foreach(shell bash zsh)
    set(completion ${PROJECT_BINARY_DIR}/completions/isoscale.${shell})
    add_custom_command(OUTPUT ${completion}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completions
      COMMAND isoscale completion ${shell} > ${completion}
      DEPENDS isoscale VERBATIM)
    list(APPEND completion_files ${completion})
  endforeach()
  add_custom_target(isoscale_completions ALL DEPENDS ${completion_files})
  list(GET completion_files 0 bash_file)
  list(GET completion_files 1 zsh_file)
  install(FILES ${bash_file} DESTINATION share/bash-completion/completions RENAME isoscale)
  install(FILES ${zsh_file} DESTINATION share/zsh/site-functions RENAME _isoscale)
endif()

# As they lie in the sources, so that their links hold.
install(FILES LICENSE README.md DESTINATION share/doc/isoscale)
install(FILES results/SCHEMA.md DESTINATION share/doc/isoscale/results)
install(FILES analysis/systems/README.md DESTINATION share/doc/isoscale/analysis/systems)
install(FILES analysis/software/README.md DESTINATION share/doc/isoscale/analysis/software)
install(DIRECTORY docs DESTINATION share/doc/isoscale FILES_MATCHING PATTERN *.md PATTERN *.png)
# Examples of suites and models; the program has its own within it.
install(DIRECTORY workloads/models workloads/suites DESTINATION share/isoscale/workloads
  FILES_MATCHING PATTERN *.toml)
# Installing packages and the demo need a checkout; a recipe for a package is of no use in one.
install(DIRECTORY analysis/systems analysis/software DESTINATION share/isoscale/analysis
  FILES_MATCHING PATTERN *.toml PATTERN *.md)
install(DIRECTORY launch/ DESTINATION share/isoscale/launch USE_SOURCE_PERMISSIONS
  PATTERN checkout.sh EXCLUDE
  PATTERN install-packages.sh EXCLUDE
  PATTERN packages.txt EXCLUDE
  PATTERN demo.sh EXCLUDE
  PATTERN machine.sh EXCLUDE
  PATTERN tarball.sh EXCLUDE
  PATTERN container EXCLUDE
  PATTERN spack EXCLUDE
  PATTERN __pycache__ EXCLUDE)
