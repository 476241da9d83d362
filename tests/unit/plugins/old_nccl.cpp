// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A libnccl.so.2 with the names of NCCL 2.18 that the plugin uses, and none that came later.
extern "C" {
int ncclGetVersion(int* version) {
  *version = 21805;
  return 0;
}
const char* ncclGetErrorString(int /*result*/) { return "an old stub"; }
const char* ncclGetLastError(void* /*communicator*/) { return ""; }
int ncclAllGather() { return 1; }
int ncclAllReduce() { return 1; }
int ncclBroadcast() { return 1; }
int ncclCommAbort() { return 1; }
int ncclCommCount() { return 1; }
int ncclCommDestroy() { return 1; }
int ncclCommFinalize() { return 1; }
int ncclCommGetAsyncError() { return 1; }
int ncclCommInitRankConfig() { return 1; }
int ncclCommSplit() { return 1; }
int ncclGetUniqueId() { return 1; }
int ncclGroupEnd() { return 1; }
int ncclGroupStart() { return 1; }
int ncclRecv() { return 1; }
int ncclReduce() { return 1; }
int ncclReduceScatter() { return 1; }
int ncclSend() { return 1; }
}
