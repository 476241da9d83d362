// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/mpi/points.hpp"

namespace isoscale::executor {

/// Collectives as one MPI call and in chunks, on the calling thread (blocking calls) and on a
/// worker (non-blocking calls). A part of f32 is over 64 KiB: no transport sends that much before
/// the receiver has asked for it.
std::vector<Way> ways() {
  constexpr std::uint64_t part = 20'011, chunk = 6'007;
  const auto making = [](const HostOptions& options) {
    return [options](const comm::Communicator& /*point*/) { return make_host_executor(options); };
  };
  const HostOptions threads{.streams = HostStreams::threads};
  const HostOptions chunks{.streams = HostStreams::threads, .elements_per_call = chunk};
  const HostOptions folded{.streams = HostStreams::folded};
  return {{.name = "calling_whole", .make = making(threads), .part = part},
          {.name = "calling_chunks", .make = making(chunks), .part = part},
          {.name = "worker_whole", .make = making(threads), .stream = 1, .part = part},
          {.name = "worker_chunks", .make = making(chunks), .stream = 1, .part = part},
          {.name = "folded", .make = making(folded), .part = part, .folds = true}};
}

}  // namespace isoscale::executor
