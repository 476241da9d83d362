# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# How tests are started: under mpiexec or by Python, with what a launcher and the sanitizers need.

set(isoscale_test_environment
  # Open MPI refuses root unless told twice; other MPIs ignore these.
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # MPICH gives way only after looking 1000 times, and tests have more ranks than there are cores.
  MPIR_CVAR_POLLS_BEFORE_YIELD=1
  # Slow unwinding: Open MPI's plugins keep no frame pointers and are unloaded before the leaks are
  # counted; only whole stacks show that libmpi stands below them, as lsan.supp needs. Thread-local
  # memory of libraries loaded late is left out: it crashes LeakSanitizer itself now and then.
  "ASAN_OPTIONS=fast_unwind_on_malloc=0:detect_stack_use_after_return=1:intercept_tls_get_addr=0"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.supp:print_suppressions=0"
  # The longest history: without the stack of the earlier access tsan.supp cannot know it is MPI's.
  "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp:halt_on_error=1:history_size=7")

# Sanitizers cost some 10 times the time, mostly in tests of many ranks on few cores.
set(isoscale_patience 1)
if(ISOSCALE_SANITIZE)
  set(isoscale_patience 5)
endif()

set(isoscale_mpiexec_flags ${MPIEXEC_PREFLAGS})
if(ISOSCALE_MPI)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version
    OUTPUT_VARIABLE mpiexec_version ERROR_VARIABLE mpiexec_version)
  if(mpiexec_version MATCHES "Open MPI|OpenRTE|PRRTE")
    # Tests run with more ranks than the machine has cores, several at a time: a rank that waits
    # yields its core to others each time that it has looked.
    list(APPEND isoscale_mpiexec_flags --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  else()
    set(isoscale_patience 5)  # MPICH spins while it waits, also for a core that its peer needs
  endif()
endif()

# isoscale_add_launched_test(NAME RANKS n COMMAND program [argument ...]
#                            [LABELS label ...] [TIMEOUT s] [FILTER f])
function(isoscale_add_launched_test NAME)
  cmake_parse_arguments(ARG "" "RANKS;TIMEOUT;FILTER" "COMMAND;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS mpi)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 240)
  endif()
  if(ARG_FILTER)
    list(APPEND ARG_COMMAND --gtest_filter=${ARG_FILTER})
  endif()
  math(EXPR timeout "${ARG_TIMEOUT} * ${isoscale_patience}")
  add_test(NAME ${NAME} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ARG_RANKS}
    ${isoscale_mpiexec_flags} ${ARG_COMMAND} ${MPIEXEC_POSTFLAGS})
  # Ranks wait for each other half of the time. At most 2: ctest never starts a test that asks for
  # more processors than it may use.
  set(processors 1)
  if(ARG_RANKS GREATER 2)
    set(processors 2)
  endif()
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${timeout}
    PROCESSORS ${processors} ENVIRONMENT "${isoscale_test_environment}")
endfunction()

# What tests in other languages are told of the program and its launcher.
list(JOIN isoscale_mpiexec_flags " " flags)
set(isoscale_program_environment ${isoscale_test_environment}
  "ISOSCALE=$<TARGET_FILE:isoscale>"
  "ISOSCALE_SAMPLE=$<TARGET_FILE:make_sample_run>"
  "ISOSCALE_DOCUMENTS=${PROJECT_SOURCE_DIR}"
  "ISOSCALE_LAUNCH_SCRIPTS=${PROJECT_SOURCE_DIR}/launch"
  "ISOSCALE_PATIENCE=${isoscale_patience}"
  "ISOSCALE_MPIEXEC=${MPIEXEC_EXECUTABLE} ${flags} ${MPIEXEC_NUMPROC_FLAG}")

# isoscale_python_test(NAME TESTS module[.class] ... LABELS label ... TIMEOUT s [PROCESSORS n]
#                      [ENVIRONMENT variable=value ...])
#
# Tests of this folder; python's own runner tells the rest.
function(isoscale_python_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "TESTS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  math(EXPR timeout "${ARG_TIMEOUT} * ${isoscale_patience}")
  add_test(NAME ${NAME} COMMAND Python3::Interpreter -B -m unittest -v ${ARG_TESTS}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${timeout}
    PROCESSORS ${ARG_PROCESSORS} SKIP_RETURN_CODE 77
    ENVIRONMENT "${isoscale_program_environment};${ARG_ENVIRONMENT}")
endfunction()
