// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/mpi/points.hpp"

namespace isoscale::executor {

/// On the calling thread and on a worker; parts of f32 are above any eager limit (64 KiB).
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
