// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The part of the seam for MPI: a call that fails does nothing and returns a code, as it does where
// the error handler is MPI_ERRORS_RETURN, which all communicators of the product have.
#include <mpi.h>

#include "tests/fault/interposed.hpp"

#define MPI_CALL(NAME, ...) \
  isoscale::fault::instead<NAME>(__func__, int{MPI_ERR_OTHER} __VA_OPT__(, ) __VA_ARGS__)
#define MPI_RELEASE(NAME, ...) \
  isoscale::fault::after<NAME>(__func__, int{MPI_ERR_OTHER} __VA_OPT__(, ) __VA_ARGS__)

extern "C" {

SEAM_7(MPI_CALL, int, MPI_Allgather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype,
       MPI_Comm)
SEAM_6(MPI_CALL, int, MPI_Allreduce, const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm)
SEAM_7(MPI_CALL, int, MPI_Alltoall, const void*, int, MPI_Datatype, void*, int, MPI_Datatype,
       MPI_Comm)
SEAM_1(MPI_CALL, int, MPI_Barrier, MPI_Comm)
SEAM_5(MPI_CALL, int, MPI_Bcast, void*, int, MPI_Datatype, int, MPI_Comm)
SEAM_2(MPI_CALL, int, MPI_Comm_dup, MPI_Comm, MPI_Comm*)
SEAM_1(MPI_RELEASE, int, MPI_Comm_free, MPI_Comm*)
SEAM_2(MPI_CALL, int, MPI_Comm_group, MPI_Comm, MPI_Group*)
SEAM_2(MPI_CALL, int, MPI_Comm_rank, MPI_Comm, int*)
SEAM_2(MPI_CALL, int, MPI_Comm_set_errhandler, MPI_Comm, MPI_Errhandler)
SEAM_2(MPI_CALL, int, MPI_Comm_size, MPI_Comm, int*)
SEAM_4(MPI_CALL, int, MPI_Comm_split, MPI_Comm, int, int, MPI_Comm*)
SEAM_5(MPI_CALL, int, MPI_Comm_split_type, MPI_Comm, int, int, MPI_Info, MPI_Comm*)
SEAM_3(MPI_CALL, int, MPI_Error_string, int, char*, int*)
SEAM_0(MPI_RELEASE, int, MPI_Finalize)
SEAM_1(MPI_CALL, int, MPI_Finalized, int*)
SEAM_8(MPI_CALL, int, MPI_Gather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
       MPI_Comm)
SEAM_3(MPI_CALL, int, MPI_Get_count, const MPI_Status*, MPI_Datatype, int*)
SEAM_2(MPI_CALL, int, MPI_Get_library_version, char*, int*)
SEAM_1(MPI_RELEASE, int, MPI_Group_free, MPI_Group*)
SEAM_5(MPI_CALL, int, MPI_Group_translate_ranks, MPI_Group, int, const int*, MPI_Group, int*)
SEAM_8(MPI_CALL, int, MPI_Iallgather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype,
       MPI_Comm, MPI_Request*)
SEAM_7(MPI_CALL, int, MPI_Iallreduce, const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm,
       MPI_Request*)
SEAM_8(MPI_CALL, int, MPI_Ialltoall, const void*, int, MPI_Datatype, void*, int, MPI_Datatype,
       MPI_Comm, MPI_Request*)
SEAM_2(MPI_CALL, int, MPI_Ibarrier, MPI_Comm, MPI_Request*)
SEAM_6(MPI_CALL, int, MPI_Ibcast, void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*)
SEAM_9(MPI_CALL, int, MPI_Igather, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
       MPI_Comm, MPI_Request*)
SEAM_6(MPI_CALL, int, MPI_Improbe, int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*)
SEAM_4(MPI_CALL, int, MPI_Init_thread, int*, char***, int, int*)
SEAM_7(MPI_CALL, int, MPI_Irecv, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)
SEAM_8(MPI_CALL, int, MPI_Ireduce, const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm,
       MPI_Request*)
SEAM_7(MPI_CALL, int, MPI_Ireduce_scatter_block, const void*, void*, int, MPI_Datatype, MPI_Op,
       MPI_Comm, MPI_Request*)
SEAM_9(MPI_CALL, int, MPI_Iscatter, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
       MPI_Comm, MPI_Request*)
SEAM_7(MPI_CALL, int, MPI_Isend, const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)
SEAM_5(MPI_CALL, int, MPI_Mrecv, void*, int, MPI_Datatype, MPI_Message*, MPI_Status*)
SEAM_3(MPI_CALL, int, MPI_Op_create, MPI_User_function*, int, MPI_Op*)
SEAM_1(MPI_RELEASE, int, MPI_Op_free, MPI_Op*)
SEAM_1(MPI_CALL, int, MPI_Query_thread, int*)
SEAM_7(MPI_CALL, int, MPI_Recv, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*)
SEAM_7(MPI_CALL, int, MPI_Reduce, const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm)
SEAM_6(MPI_CALL, int, MPI_Reduce_scatter_block, const void*, void*, int, MPI_Datatype, MPI_Op,
       MPI_Comm)
SEAM_8(MPI_CALL, int, MPI_Scatter, const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int,
       MPI_Comm)
SEAM_6(MPI_CALL, int, MPI_Send, const void*, int, MPI_Datatype, int, int, MPI_Comm)
SEAM_6(MPI_CALL, int, MPI_Ssend, const void*, int, MPI_Datatype, int, int, MPI_Comm)
SEAM_3(MPI_CALL, int, MPI_Test, MPI_Request*, int*, MPI_Status*)
SEAM_4(MPI_CALL, int, MPI_Testall, int, MPI_Request*, int*, MPI_Status*)

}  // extern "C"
