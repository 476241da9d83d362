// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The part of the seam for MPI: a call that fails does nothing and returns a code, as it does where
// the error handler is MPI_ERRORS_RETURN, which all communicators of the product have.
#include <mpi.h>

#include "tests/fault/interposed.hpp"

namespace {

template <auto Function, class... Arguments>
int mpi(const char* name, Arguments... arguments) {
  return isoscale::fault::instead<Function>(name, int{MPI_ERR_OTHER}, arguments...);
}

template <auto Function, class... Arguments>
int mpi_end(const char* name, Arguments... arguments) {
  return isoscale::fault::after<Function>(name, int{MPI_ERR_OTHER}, arguments...);
}

}  // namespace

extern "C" {

int MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi<MPI_Allgather>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                            comm);
}
int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm) {
  return mpi<MPI_Allreduce>(__func__, sendbuf, recvbuf, count, datatype, op, comm);
}
int MPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi<MPI_Alltoall>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                           comm);
}
int MPI_Barrier(MPI_Comm comm) { return mpi<MPI_Barrier>(__func__, comm); }
int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return mpi<MPI_Bcast>(__func__, buffer, count, datatype, root, comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  return mpi<MPI_Comm_dup>(__func__, comm, newcomm);
}
int MPI_Comm_free(MPI_Comm* comm) { return mpi_end<MPI_Comm_free>(__func__, comm); }
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  return mpi<MPI_Comm_group>(__func__, comm, group);
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) { return mpi<MPI_Comm_rank>(__func__, comm, rank); }
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
  return mpi<MPI_Comm_set_errhandler>(__func__, comm, errhandler);
}
int MPI_Comm_size(MPI_Comm comm, int* size) { return mpi<MPI_Comm_size>(__func__, comm, size); }
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return mpi<MPI_Comm_split>(__func__, comm, color, key, newcomm);
}
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  return mpi<MPI_Comm_split_type>(__func__, comm, split_type, key, info, newcomm);
}
int MPI_Error_string(int errorcode, char* string, int* resultlen) {
  return mpi<MPI_Error_string>(__func__, errorcode, string, resultlen);
}
int MPI_Finalize() { return mpi_end<MPI_Finalize>(__func__); }
int MPI_Finalized(int* flag) { return mpi<MPI_Finalized>(__func__, flag); }
int MPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
               int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return mpi<MPI_Gather>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                         comm);
}
int MPI_Get_count(const MPI_Status* status, MPI_Datatype datatype, int* count) {
  return mpi<MPI_Get_count>(__func__, status, datatype, count);
}
int MPI_Get_library_version(char* version, int* resultlen) {
  return mpi<MPI_Get_library_version>(__func__, version, resultlen);
}
int MPI_Group_free(MPI_Group* group) { return mpi_end<MPI_Group_free>(__func__, group); }
int MPI_Group_translate_ranks(MPI_Group group1, int n, const int* ranks1, MPI_Group group2,
                              int* ranks2) {
  return mpi<MPI_Group_translate_ranks>(__func__, group1, n, ranks1, group2, ranks2);
}
int MPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return mpi<MPI_Iallgather>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                             comm, request);
}
int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  return mpi<MPI_Iallreduce>(__func__, sendbuf, recvbuf, count, datatype, op, comm, request);
}
int MPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return mpi<MPI_Ialltoall>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                            comm, request);
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return mpi<MPI_Ibarrier>(__func__, comm, request);
}
int MPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
               MPI_Request* request) {
  return mpi<MPI_Ibcast>(__func__, buffer, count, datatype, root, comm, request);
}
int MPI_Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                MPI_Request* request) {
  return mpi<MPI_Igather>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                          root, comm, request);
}
int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                MPI_Status* status) {
  return mpi<MPI_Improbe>(__func__, source, tag, comm, flag, message, status);
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return mpi<MPI_Init_thread>(__func__, argc, argv, required, provided);
}
int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return mpi<MPI_Irecv>(__func__, buf, count, datatype, source, tag, comm, request);
}
int MPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                int root, MPI_Comm comm, MPI_Request* request) {
  return mpi<MPI_Ireduce>(__func__, sendbuf, recvbuf, count, datatype, op, root, comm, request);
}
int MPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  return mpi<MPI_Ireduce_scatter_block>(__func__, sendbuf, recvbuf, recvcount, datatype, op, comm,
                                        request);
}
int MPI_Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return mpi<MPI_Iscatter>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                           root, comm, request);
}
int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return mpi<MPI_Isend>(__func__, buf, count, datatype, dest, tag, comm, request);
}
int MPI_Mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  return mpi<MPI_Mrecv>(__func__, buf, count, type, message, status);
}
int MPI_Op_create(MPI_User_function* function, int commute, MPI_Op* op) {
  return mpi<MPI_Op_create>(__func__, function, commute, op);
}
int MPI_Op_free(MPI_Op* op) { return mpi_end<MPI_Op_free>(__func__, op); }
int MPI_Query_thread(int* provided) { return mpi<MPI_Query_thread>(__func__, provided); }
int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  return mpi<MPI_Recv>(__func__, buf, count, datatype, source, tag, comm, status);
}
int MPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
               int root, MPI_Comm comm) {
  return mpi<MPI_Reduce>(__func__, sendbuf, recvbuf, count, datatype, op, root, comm);
}
int MPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return mpi<MPI_Reduce_scatter_block>(__func__, sendbuf, recvbuf, recvcount, datatype, op, comm);
}
int MPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return mpi<MPI_Scatter>(__func__, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                          root, comm);
}
int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return mpi<MPI_Send>(__func__, buf, count, datatype, dest, tag, comm);
}
int MPI_Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return mpi<MPI_Ssend>(__func__, buf, count, datatype, dest, tag, comm);
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return mpi<MPI_Test>(__func__, request, flag, status);
}
int MPI_Testall(int count, MPI_Request* array_of_requests, int* flag,
                MPI_Status* array_of_statuses) {
  return mpi<MPI_Testall>(__func__, count, array_of_requests, flag, array_of_statuses);
}

}  // extern "C"
