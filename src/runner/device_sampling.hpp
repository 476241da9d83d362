// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "machine/device_sampler.hpp"
#include "machine/facts.hpp"
#include "machine/nvml.hpp"
#include "results/run_data.hpp"
#include "runner/measure.hpp"

/// Devices looked at beside a point: who samples what, and how it comes together.
namespace isoscale::runner {

/// What one rank of a point samples.
struct SamplingDuty {
  bool node = false;             ///< CPUs, energy, temperature and network of its node
  std::vector<int> cpus = {};    ///< logical CPUs of all ranks of the point on that node
  std::string gpu_uuid = {};     ///< its own GPU; "" = none
  std::size_t most_samples = 2;  ///< of each series

  bool operator==(const SamplingDuty&) const = default;
};

/// The duty of rank `rank` of a point whose ranks are `world_ranks`, whose own GPU is `gpu_uuid`:
/// of each node the lowest rank of the point samples what the node has, and each rank its GPU. At
/// most 600 samples a series, fewer where the point has more than 128 ranks, so that rank 0 can
/// hold all of them. `facts` and `node_of_rank` by world rank. Pure.
[[nodiscard]] SamplingDuty sampling_duty(int rank, std::span<const int> world_ranks,
                                         std::span<const int> node_of_rank,
                                         std::span<const machine::MachineFacts> facts,
                                         std::string_view gpu_uuid);

/// Samples what is this rank's to sample from when it is made until stop().
class PointSampler {
 public:
  explicit PointSampler(const SamplingDuty& duty);
  [[nodiscard]] std::vector<machine::SampledSeries> stop() { return sampler_.stop(); }

 private:
  machine::NvmlLibrary nvml_;  ///< outlives what is read with it
  machine::DeviceSampler sampler_;
};

/// The quantities of a rank's GPU that are sampled beside the rows of a micro-benchmark: its clock,
/// and what holds that down.
class GpuWatch {
 public:
  explicit GpuWatch(const std::string& uuid);  ///< "" = there is no GPU, nor any source
  /// They live as long as this.
  [[nodiscard]] const std::vector<machine::Source>& sources() const { return sources_; }

 private:
  machine::NvmlLibrary nvml_;  ///< outlives what is read with it
  std::vector<machine::Source> sources_;
};

/// Collective over the point, after collect(): every rank's series into `data` on its rank 0, times
/// counted from the begin of rank 0's first step on its clock; and how long rank 0's steps took
/// together.
void collect_device_series(const comm::Communicator& point, const Record& record,
                           const std::vector<machine::SampledSeries>& mine,
                           results::PointData& data);

}  // namespace isoscale::runner
