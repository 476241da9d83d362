// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/op.hpp"

namespace isoscale::program {
/// A list of ops on streams, in the order of issue, without branches.
struct Program {
  std::vector<Op> ops;
  std::vector<Wait> waits;

  [[nodiscard]] std::span<const Wait> waits_of(const Op& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
};

/// Selects one of a rank's programs: 0 is setup, 1 + i is steps[i].
enum class Section : std::uint32_t { setup, step };
[[nodiscard]] constexpr Section step_section(std::size_t i) {
  return static_cast<Section>(1 + static_cast<std::uint32_t>(i));
}

/// Elements whose values must not depend on the mesh of ranks that computes them, for example those
/// of an output, a gradient or an updated weight.
struct Observable {
  std::string name;  ///< name of the global tensor: "layer3.qkv.gradient"
  Slice slice;
  Shard shard;
};

/// The programs that one rank runs on one set of buffers: `setup` is run once, then each of `steps`
/// may be run any number of times, in any order. A training workload has one step. A
/// micro-benchmark has one for each case that it times, and others that prepare or check the memory
/// of a case. A run may add further steps, for example to check results.
struct RankProgram {
  std::vector<Buffer> buffers;
  /// For each memory space, the size of its arena, the block of memory that holds all its buffers.
  std::array<std::uint64_t, space_count> arena_bytes{};

  /// Returns the bytes of the pinned and the pageable arena, which are in host memory on every
  /// executor.
  [[nodiscard]] std::uint64_t host_bytes() const {
    return arena_bytes[static_cast<std::size_t>(Space::pinned)] +
           arena_bytes[static_cast<std::size_t>(Space::pageable)];
  }
  std::vector<std::string> streams;  ///< names; stream 0 is "compute"
  Program setup;
  std::vector<Program> steps = std::vector<Program>(1);  ///< at least one
  std::vector<Observable> observables;

  [[nodiscard]] Program& step() { return steps.front(); }
  [[nodiscard]] const Program& step() const { return steps.front(); }
  [[nodiscard]] std::size_t section_count() const { return 1 + steps.size(); }
  [[nodiscard]] const Program& section(Section which) const {
    return which == Section::setup ? setup : steps.at(static_cast<std::size_t>(which) - 1);
  }
  /// Returns setup and the steps, in order.
  [[nodiscard]] std::vector<const Program*> sections() const {
    std::vector<const Program*> all{&setup};
    for (const Program& step : steps) all.push_back(&step);
    return all;
  }
};

/// The programs of all ranks of a point (one measured configuration). Ranks with equal programs
/// share one.
struct ProgramSet {
  mesh::Shape mesh;
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of_rank;  ///< for each rank, an index in `programs`

  [[nodiscard]] const RankProgram& of(int rank) const {
    return programs[program_of_rank[static_cast<std::size_t>(rank)]];
  }
};

/// A fault that makes communication between two ranks take `factor` times as long. In the user's
/// request, `low` and `high` are ranks in MPI_COMM_WORLD; in SessionOptions, ranks of the point.
struct SlowLink {
  int low = 0, high = 0;
  double factor = 1;

  bool operator==(const SlowLink&) const = default;
};

/// The fault that a rank gets stuck in the middle of a program, at the third time that it runs this
/// program: it spins for ever (spins), or it throws an error (fails).
enum class Stuck : std::uint8_t { no, spins, fails };

/// The faults that are injected into one rank.
struct Faults {
  double gemm_factor = 1;  ///< every GEMM takes this many times as long
  /// If not 0, GEMMs are not computed; they only wait as long as they would take at this FLOP/s.
  double gemm_rate = 0;
  std::vector<SlowLink> slow_links = {};  ///< slow links that end at this rank
  /// The mean relative lengthening of compute ops (0.1 = 10% longer); the lengthening of each op is
  /// drawn from an exponential distribution.
  double jitter = 0;
  std::uint64_t seed = 0;  ///< seed of the jitter's random numbers
  Stuck stuck = Stuck::no;
  int stuck_rank = 0;  ///< the stuck rank in MPI_COMM_WORLD, for messages

  [[nodiscard]] bool any() const {
    return gemm_factor != 1 || gemm_rate != 0 || !slow_links.empty() || jitter != 0 ||
           stuck != Stuck::no;
  }
  bool operator==(const Faults&) const = default;
};

/// The registration of buffers with the communication library. local: each rank registers in
/// advance the memory from which it communicates.
enum class Registration : std::uint8_t { none, local };
[[nodiscard]] constexpr std::string_view name(Registration registration) {
  return registration == Registration::local ? "local" : "none";
}

/// Requests for one session, in which an executor runs a rank's program. The executor throws if it
/// cannot fulfil a request.
struct SessionOptions {
  std::string collective_algorithm{};  ///< forced on the communication library; "" = its own choice
  std::string collective_protocol{};   ///< forced on the communication library; "" = its own choice
  Registration registration = Registration::none;
  std::optional<int> numa_node{};  ///< NUMA node of host memory; absent: the system's choice
  Faults faults{};                 ///< faults to inject into this rank
  /// If true, ranks that exchange messages connect in the first play that needs it, and not before,
  /// so that a dead link ends this play (NoAnswer) and not the preparation.
  bool connects_in_play = false;

  bool operator==(const SessionOptions&) const = default;
};

}  // namespace isoscale::program
