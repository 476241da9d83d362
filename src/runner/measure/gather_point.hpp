// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/clock_offset.hpp"
#include "comm/communicator.hpp"
#include "machine/device_sampler.hpp"
#include "machine/facts.hpp"
#include "machine/nvml.hpp"
#include "mesh/mesh.hpp"
#include "results/run_data.hpp"
#include "runner/measure/measure_steps.hpp"

/// Brings the records of all ranks of a point together on its rank 0, and decides what each rank
/// contributes: whose spans are kept, and who samples which device.
namespace isoscale::runner {

/// Returns the ranks of a point whose spans are kept, ascending: all of them when they are no more
/// than `most`, else those of a part of the mesh: the first coordinates of each axis. dp is cut
/// down first, since its ranks do alike, then ep, cp and tp; pp last, since its stages each play a
/// program of their own. Never more than `most`, which is at least 1, and never none.
[[nodiscard]] std::vector<int> traced_ranks(const mesh::Shape& shape, int most);

/// Collective over the point: what one of its sessions took and decided, into `data` on rank 0.
/// Communicators and choices are added to those of earlier sessions.
void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data);

/// Collective over the point: what its sessions took, every rank's step times, and the spans of its
/// ranks `traced`, ascending, on the clock of its rank 0, into `data` on rank 0. `clock` tells how
/// this rank's clock, which the record's traces were taken on, ran against it.
void collect(const comm::Communicator& point, const Record& record, const comm::ClockFit& clock,
             const executor::SessionFacts& session, std::span<const int> traced,
             results::PointData& data);

/// Collective over the point: the times without communication of its ranks `traced`, ascending,
/// into `data` on rank 0.
void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data);

/// Collective over the point: adds the choices of all ranks to `data` on rank 0, each shape once:
/// the ranks have agreed on its algorithm.
void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<executor::GemmChoice>& mine, results::PointData& data);

/// The devices that one rank of a point samples while it is measured.
struct SamplingDuty {
  bool node = false;             ///< CPUs, energy, temperature and network of its node
  std::vector<int> cpus = {};    ///< logical CPUs of all ranks of the point on that node
  std::string gpu_uuid = {};     ///< its own GPU; "" = none
  std::size_t most_samples = 2;  ///< of each series

  bool operator==(const SamplingDuty&) const = default;
};

/// Returns the duty of rank `rank` of a point whose ranks are `world_ranks`, whose own GPU is
/// `gpu_uuid`: of each node the lowest rank of the point samples what the node has, and each rank
/// its GPU. At most 600 samples a series, fewer where the point has more than 128 ranks, so that
/// rank 0 can hold all of them. `facts` and `node_of_rank` by world rank. Pure.
[[nodiscard]] SamplingDuty sampling_duty(int rank, std::span<const int> world_ranks,
                                         std::span<const int> node_of_rank,
                                         std::span<const machine::MachineFacts> facts,
                                         std::string_view gpu_uuid);

/// Samples by its duty from its construction until stop().
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
