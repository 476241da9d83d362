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
#include "machine/nvml.hpp"
#include "mesh/mesh.hpp"
#include "results/records/json_object.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/measure_steps.hpp"

/// Gathers the records of all ranks of a point on its rank 0, and decides what each rank
/// contributes: which ranks' spans are kept, and which ranks sample which devices.
namespace isoscale::runner::measure {

/// Returns the ranks of a point whose spans are kept, ascending: all ranks if there are at most
/// `most`, else the ranks that have the first coordinates along each axis. dp is reduced first,
/// since its ranks do the same work, then ep, cp and tp; pp is reduced last, since each stage plays
/// a program of its own. `most` must be at least 1, and at least one rank is returned.
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
/// is a struct whose fields are listed (results::fields_of), or a list of such structs.
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
/// reports. Communicators and GEMM algorithms of earlier sessions are kept; other facts of theirs
/// are replaced.
void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data);

/// Collective over the point: stores in `data` on rank 0 the facts of the session, the step times
/// of every rank, and the spans of the ranks in `traced` (ascending), converted to the clock of
/// rank 0. The traces in `record` are on this rank's clock, which `clock` converts.
void collect(const comm::Communicator& point, const Record& record, const comm::ClockFit& clock,
             const executor::SessionFacts& session, std::span<const int> traced,
             results::PointData& data);

/// Collective over the point: stores in `data` on rank 0 how long ops took without communication,
/// for the ranks in `traced` (ascending).
void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data);

/// Collective over the point: adds the GEMM algorithms that all ranks chose to `data` on rank 0.
/// Each shape is stored once, since the ranks have agreed on its algorithm.
void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<results::GemmChoice>& mine, results::PointData& data);

/// The devices that one rank of a point samples while it is measured.
struct SamplingDuty {
  bool node = false;             ///< samples CPUs, energy, temperature and network of the node
  std::vector<int> cpus = {};    ///< logical CPUs of all ranks of the point on that node
  std::string gpu_uuid = {};     ///< its own GPU; "" = none
  std::size_t most_samples = 2;  ///< limit on the samples of each series

  bool operator==(const SamplingDuty&) const = default;
};

/// Returns the devices that rank `rank` of a point samples. `world_ranks` are the ranks of the
/// point, and `gpu_uuid` names this rank's own GPU. On each node the lowest rank of the point
/// samples the node's devices, and each rank samples its GPU. A series has at most 600 samples. If
/// the point has more than 128 ranks, the limit is lower, but at least 60, so that rank 0 can hold
/// the samples of all ranks. `facts` and `node_of_rank` are by world rank. Pure.
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

/// The sources that are sampled on a rank's GPU while a micro-benchmark is timed: its clock, and
/// the reasons that limit the clock.
class GpuWatch {
 public:
  explicit GpuWatch(const std::string& uuid);  ///< "" = no GPU, so there are no sources
  /// Returns sources that are valid as long as this object exists.
  [[nodiscard]] const std::vector<machine::Source>& sources() const { return sources_; }

 private:
  machine::NvmlLibrary nvml_;  ///< must outlive the sources
  std::vector<machine::Source> sources_;
};

/// Collective over the point, called after collect(): stores in `data` on rank 0 the sampled series
/// of every rank, and the total time of rank 0's steps. Stored times are on rank 0's clock, and
/// count from the begin of its first step; those of `mine` are on this rank's clock.
void collect_device_series(const comm::Communicator& point, const Record& record,
                           const std::vector<results::DeviceSeries>& mine,
                           results::PointData& data);

}  // namespace isoscale::runner::measure
