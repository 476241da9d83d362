// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/clock_offset.hpp"
#include "comm/communicator.hpp"
#include "machine/device_sampler.hpp"
#include "machine/facts.hpp"
#include "machine/nvml_library.hpp"
#include "mesh/mesh.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/measure_steps.hpp"

/// Gathers on rank 0 of a point the records of all its ranks. Decides for which ranks the spans
/// (start and end times of ops) are kept, and which rank samples which devices.
namespace isoscale::runner::measure {

/// Returns the ranks of a point whose spans are kept, ascending: all ranks if there are at most
/// `most`, which must be at least 1. Otherwise they are the ranks whose coordinate along each axis
/// is below some limit. The limits are chosen so that at most `most` ranks remain: the limit for dp
/// is lowered first, since all ranks along dp do the same work, then those for ep, cp and tp, and
/// last that for pp, since each pipeline stage plays a different program.
[[nodiscard]] std::vector<int> traced_ranks(const mesh::Shape& shape, int most);

/// Collective: returns on rank 0 the values of all ranks, by rank; empty on other ranks.
template <class Value>
[[nodiscard]] std::vector<std::vector<Value>> gather_values(const comm::Communicator& ranks,
                                                            std::span<const Value> mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<std::vector<Value>> all;
  for (const std::vector<std::byte>& part : ranks.gather(std::as_bytes(mine))) {
    std::vector<Value>& values = all.emplace_back(part.size() / sizeof(Value));
    if (!values.empty()) std::memcpy(values.data(), part.data(), part.size());
  }
  return all;
}

/// Collective: returns on rank 0 the records of all ranks, by rank; empty on other ranks. A record
/// is a struct that lists its fields for results::fields_of, or a vector of such structs.
template <class Record>
[[nodiscard]] std::vector<Record> gather_records(const comm::Communicator& ranks,
                                                 const Record& mine) {
  std::vector<Record> all;
  const std::string packed = results::packed(mine);
  for (const std::vector<std::byte>& part : ranks.gather(std::as_bytes(std::span{packed}))) {
    all.push_back(results::unpacked<Record>(part));
  }
  return all;
}

/// Collective over the point: stores in `data` on rank 0 the facts that one session of the point
/// reports. If a point has several sessions, `data` gets the communicators and GEMM algorithms of
/// all of them; every other fact is that of the session that was stored last.
void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data);

/// Collective over the point: stores in `data` on rank 0 the facts of the session, the clock, the
/// step times and the sums of op times of every rank, and the spans of the ranks in `traced`
/// (ascending). The spans in `record` are in times of this rank's clock; they are stored in times
/// of rank 0's clock, to which `clock` converts.
void collect(const comm::Communicator& point, const Record& record, const comm::ClockFit& clock,
             const executor::SessionFacts& session, std::span<const int> traced,
             results::PointData& data);

/// Collective over the point: stores in `data` on rank 0 the durations of ops when the step was
/// played without communication, for the ranks in `traced` (ascending). `mine` has this rank's.
void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data);

/// Collective over the point: adds to `data` on rank 0 the GEMM algorithms that all ranks chose.
/// Each GEMM shape is stored once, since the ranks have agreed on one algorithm for it.
void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<results::GemmChoice>& mine, results::PointData& data);

/// The devices that one rank samples while a point is measured.
struct SamplingDuty {
  bool node = false;  ///< true if this rank samples CPUs, energy, temperature, network of its node
  /// The logical CPUs to which the ranks of the point on this node are bound; they are sampled if
  /// `node` is true. Empty = all CPUs of the node, since some rank there is not bound.
  std::vector<int> cpus = {};
  std::string gpu_uuid = {};     ///< UUID of its own GPU, which it samples; "" = none
  std::size_t most_samples = 2;  ///< limit on the number of samples in each series

  bool operator==(const SamplingDuty&) const = default;
};

/// Returns which devices the rank `rank` of a point samples. On each node the lowest rank of the
/// point samples the node's devices, and each rank samples its own GPU, whose UUID is `gpu_uuid`. A
/// series has at most 600 samples; with more than 128 ranks this limit falls, down to 60, so that
/// rank 0 can hold the samples of all ranks. `world_ranks` are the ranks of the launch that play
/// the point, in mesh order; `facts` and `node_of_rank` are indexed by rank of the launch.
[[nodiscard]] SamplingDuty sampling_duty(int rank, std::span<const int> world_ranks,
                                         std::span<const int> node_of_rank,
                                         std::span<const machine::MachineFacts> facts,
                                         std::string_view gpu_uuid);

/// Samples the devices of a SamplingDuty from its construction until stop().
class PointSampler {
 public:
  explicit PointSampler(const SamplingDuty& duty);
  [[nodiscard]] std::vector<results::DeviceSeries> stop() { return sampler_.stop(); }

 private:
  machine::NvmlLibrary nvml_;  ///< must outlive the sampler
  machine::DeviceSampler sampler_;
};

/// Gives access to the GPU of a rank while a micro-benchmark is timed: its clock, and the reasons
/// why the clock is limited.
class GpuWatch {
 public:
  explicit GpuWatch(const std::string& uuid);  ///< "" = no GPU, so there are no sources
  /// Returns sources that are valid as long as this object exists.
  [[nodiscard]] const std::vector<machine::Source>& sources() const { return sources_; }

 private:
  machine::NvmlLibrary nvml_;  ///< must outlive the sources
  std::vector<machine::Source> sources_;
};

/// Collective over the point, called after collect(): stores in `data` on rank 0 the series that
/// every rank sampled, and the time from the start of rank 0's first step to the end of its last.
/// Times in `mine` are on this rank's clock. Stored times are on rank 0's clock, and count from the
/// start of its first step. Only the offset between the clocks is corrected, not their drift.
void collect_device_series(const comm::Communicator& point, const Record& record,
                           const std::vector<results::DeviceSeries>& mine,
                           results::PointData& data);

}  // namespace isoscale::runner::measure
