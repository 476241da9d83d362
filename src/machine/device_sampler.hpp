// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "results/records/executor_and_sampler_records.hpp"
#include "units/quantity.hpp"

/// Samples a machine's devices at intervals during a measurement: the sources of samples, and the
/// thread that takes them.
namespace isoscale::machine {

class NvmlLibrary;

/// One quantity of one device. A counter only grows; only differences of its values mean something.
struct Channel {
  std::string device;    ///< "cpu", "package 0", "mlx5_0 port 1", "gpu 0"
  std::string quantity;  ///< "clock", "energy", "temperature", "sent_bytes", ...
  std::string unit;      ///< "Hz", "W", "J", "K", "B", "s", "1"

  bool operator==(const Channel&) const = default;
};

/// Channels that are read together. Only one thread may read them at a time.
struct Source {
  std::vector<Channel> channels;
  /// Writes one value for each channel; NaN if it cannot be read now.
  std::function<void(std::span<double> values)> read;
};

/// Returns the sources of a node, which read files of the kernel below `root`, the folder with sys
/// and proc. A source is missing if its file is: a container may see no sysfs, a virtual machine
/// has no energy counters, and on many systems only root may read the energy counters of real
/// machines. Empty `cpus` means all CPUs. The sources come in this order:
/// - "clock" and "clock_min" in Hz: the mean and the least over `cpus` of scaling_cur_freq, or of
///   "cpu MHz" in /proc/cpuinfo if there is no cpufreq. With cpufreq, at most 16 of the CPUs are
///   read, evenly spread over the list.
/// - "throttle_count", a counter: the sum over `cpus` of core_throttle_count (Intel), which is how
///   often a core was slowed down because of its temperature. At most 16 of the CPUs are read.
/// - "busy_time", a counter in seconds from /proc/stat: the mean over `cpus` of the time in which a
///   CPU worked. Idle time, I/O wait, and time that a hypervisor took (steal) do not count.
/// - "energy", a counter in joules since the first reading, for CPU packages and for memory that a
///   package's counter does not include (RAPL: powercap/intel-rapl:*, on AMD too). The counter
///   continues to grow when the hardware's register wraps around.
/// - "temperature" in kelvin for CPU packages: from coretemp, k10temp and zenpower in hwmon or, if
///   none of these has it, from the thermal zones of packages.
/// - counters of active InfiniBand and RoCE ports ("sent_bytes", "received_bytes", "symbol_errors",
///   "link_downed") and of physical network devices that are up ("sent_bytes", "received_bytes",
///   "send_errors", "receive_errors").
[[nodiscard]] std::vector<Source> node_sources(const std::filesystem::path& root,
                                               const std::vector<int>& cpus);

/// Returns one source that asks NVML about the GPU (or MIG instance) with this UUID: "sm_clock",
/// "memory_clock" (Hz), "power" (W), "energy" (J, a counter), "temperature" (K), "utilisation"
/// (share of time, 0 to 1), "throttle_reasons" (the bits of nvmlClocksEventReasons),
/// "ecc_corrected", "ecc_uncorrected", "nvlink_sent_bytes", "nvlink_received_bytes" (counters). If
/// `wanted` is not empty, only these quantities are read. A quantity that the library or the GPU
/// does not offer has no channel; without channels there is no source. The library must outlive the
/// source.
[[nodiscard]] std::vector<Source> gpu_sources(const NvmlLibrary& library, std::string_view uuid,
                                              std::span<const std::string_view> wanted = {});

/// Stores at most `most` samples of some channels. When a new sample would exceed this limit, the
/// store drops every second sample, but keeps the first and the newest.
class SampleStore {
 public:
  /// `most` must be at least 2.
  explicit SampleStore(std::size_t most) : most_(most) {}
  /// Tells if samples were dropped to make room. If so, the caller must sample half as often.
  enum class Thinned : bool { no, yes };
  Thinned add(units::Nanoseconds time, std::vector<double> values);
  /// Returns one series for each channel that has a reading, in the order of `channels`, which must
  /// be the order of the values in every sample. Readings that failed are left out. Times are
  /// seconds of the steady clock; DeviceSeries::rank is not set.
  [[nodiscard]] std::vector<results::DeviceSeries> series(
      const std::vector<Channel>& channels) const;

 private:
  struct Sample {
    units::Nanoseconds time;
    std::vector<double> values;
  };
  std::size_t most_;
  std::vector<Sample> samples_;
};

struct Sampling {
  units::Seconds interval{0.1};
  std::size_t most_samples = 600;  ///< limit, at least 2; the interval doubles when it is reached
};

/// Reads sources from a thread of its own, which sleeps between samples, from construction until
/// stop(). The first sample is taken before the constructor returns and the last one by stop(), so
/// that even a very short measurement has two values of each counter. An additional channel,
/// "sample_time" of the device "sampler", holds how long each sample took. Without sources there is
/// no thread.
class DeviceSampler {
 public:
  DeviceSampler(std::vector<Source> sources, const Sampling& sampling);

  /// Ends the thread and returns its samples; to be called once.
  [[nodiscard]] std::vector<results::DeviceSeries> stop();

 private:
  void run(const std::stop_token& stopped);
  SampleStore::Thinned sample();

  std::vector<Source> sources_;
  std::vector<Channel> channels_;  ///< channels of all sources, then the sampler's own
  units::Seconds interval_;
  SampleStore store_;
  std::mutex mutex_;  ///< only for `wake_`: while the thread runs, no other thread uses the store
  std::condition_variable_any wake_;
  std::jthread thread_;  ///< last member: it must end before the members that it uses
};

}  // namespace isoscale::machine
