// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The tests that every executor must pass, those of this folder and of points in tests/mpi, run on
// the host.
#include "executor/host/host_executor.hpp"
#include "tests/executor/emulating_executor.hpp"
#include "tests/executor/executors.hpp"
#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

std::unique_ptr<Executor> make_host() { return make_host_executor({}); }

}  // namespace

std::vector<Backend> backends() {
  return {
      {.name = "host", .make = make_host, .floats = {program::DType::f64, program::DType::f32}}};
}
std::vector<Backend> narrow_backends() {
  return {{.name = "emulating",
           .make = make_emulating_executor,
           .floats = {program::DType::f16, program::DType::bf16}}};
}

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
