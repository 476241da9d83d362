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

#include "units/quantity.hpp"

/// A machine's devices are looked at again and again beside a measurement: the sources of samples,
/// and the thread that takes them.
namespace isoscale::machine {

class NvmlLibrary;

/// One quantity of one device. Counters grow: only differences of their values mean anything.
struct Channel {
  std::string device;    ///< "cpu", "package 0", "mlx5_0 port 1", "gpu 0"
  std::string quantity;  ///< "clock", "energy", "temperature", "sent_bytes", ...
  std::string unit;      ///< "Hz", "W", "J", "K", "B", "s", "1"

  bool operator==(const Channel&) const = default;
};

/// Channels that are read together, by one thread at a time.
struct Source {
  std::vector<Channel> channels;
  /// One value for each channel; NaN = it cannot be read now.
  std::function<void(std::span<double> values)> read;
};

/// The roots of a system's files; tests have a tree of their own.
struct FileTree {
  std::filesystem::path sys = "/sys", proc = "/proc";
};

// The kernel gives these. Where it gives nothing there is no source: a container may see no sysfs,
// a virtual machine has no energy counters, and those of real ones are root's on many systems.

/// "clock" and "clock_min" in Hz: mean and least over `cpus`, of scaling_cur_freq, or of "cpu MHz"
/// in /proc/cpuinfo where there is no cpufreq. Of more than 16 CPUs every n-th is looked at. No
/// `cpus` = all.
[[nodiscard]] std::vector<Source> cpu_clock_sources(const FileTree& tree,
                                                    const std::vector<int>& cpus);
/// "throttle_count", a counter: how often those cores were slowed down for their temperature, as
/// their CPUs' core_throttle_count say (Intel).
[[nodiscard]] std::vector<Source> cpu_throttle_sources(const FileTree& tree,
                                                       const std::vector<int>& cpus);
/// "busy_time", a counter in seconds: what `cpus` spent outside idle, waiting for input and stolen,
/// mean over them, out of /proc/stat. No `cpus` = all.
[[nodiscard]] std::vector<Source> cpu_busy_sources(const FileTree& tree,
                                                   const std::vector<int>& cpus);
/// "energy", a counter in joules since the first reading, of packages and of memory that is not
/// part of one (RAPL: powercap/intel-rapl:*; AMD's has the same name). It goes on where the
/// register wraps around.
[[nodiscard]] std::vector<Source> energy_sources(const FileTree& tree);
/// "temperature" in kelvin of CPU packages: hwmon's coretemp, k10temp and zenpower, else thermal
/// zones of packages.
[[nodiscard]] std::vector<Source> temperature_sources(const FileTree& tree);
/// Counters of active InfiniBand and RoCE ports ("sent_bytes", "received_bytes", "symbol_errors",
/// "link_downed") and of Ethernet devices that are real and up ("sent_bytes", "received_bytes",
/// "send_errors", "receive_errors").
[[nodiscard]] std::vector<Source> network_sources(const FileTree& tree);

/// Asks NVML about the GPU (or MIG instance) with this UUID while it works, as one source:
/// "sm_clock", "memory_clock" (Hz), "power" (W), "energy" (J, a counter), "temperature" (K),
/// "utilisation" (1), "throttle_reasons" (the bits of nvmlClocksEventReasons), "ecc_corrected",
/// "ecc_uncorrected", "nvlink_sent_bytes", "nvlink_received_bytes" (counters). A quantity that the
/// library or the GPU does not offer is no channel; without any there is no source. The library
/// outlives it. With `wanted`, these quantities alone.
[[nodiscard]] std::vector<Source> gpu_sources(const NvmlLibrary& library, std::string_view uuid,
                                              std::span<const std::string_view> wanted = {});

/// The values of one channel over time; readings that failed are left out.
struct SampledSeries {
  Channel channel;
  std::vector<units::Nanoseconds> time;  ///< steady clock
  std::vector<double> value;             ///< one for each time
};

/// Samples of some channels, bounded: where more than `most` would be held, every second one is
/// dropped. The first is always kept.
class SampleStore {
 public:
  /// `most` >= 2.
  explicit SampleStore(std::size_t most) : most_(most) {}
  /// Keeps a sample; whether samples were dropped for it, so that they are to come half as often.
  enum class Thinned : bool { no, yes };
  Thinned add(units::Nanoseconds time, std::vector<double> values);
  /// One for each channel with a reading, in the order of the channels; the values of a sample are
  /// theirs in that order.
  [[nodiscard]] std::vector<SampledSeries> series(const std::vector<Channel>& channels) const;

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
  std::size_t most_samples = 600;  ///< at least 2; beyond, the interval doubles again and again
};

/// Reads sources from a thread of its own, which sleeps between samples, from when it is made until
/// stop(). The first sample is taken before the constructor returns and the last one by stop(), so
/// that counters have a difference however short the time. A last channel, "sample_time" of the
/// device "sampler", tells how long each sample took. Without sources there is no thread.
class DeviceSampler {
 public:
  DeviceSampler(std::vector<Source> sources, const Sampling& sampling);

  /// Ends the thread and hands over what was sampled; to be called once.
  [[nodiscard]] std::vector<SampledSeries> stop();

 private:
  void run(const std::stop_token& stopped);
  SampleStore::Thinned sample();

  std::vector<Source> sources_;
  std::vector<Channel> channels_;  ///< of all sources, in order, and the sampler's own
  units::Seconds interval_;
  SampleStore store_;
  std::mutex mutex_;  ///< for waking up only: the store belongs to the thread while there is one
  std::condition_variable_any wake_;
  std::jthread thread_;  ///< last: ends before what it uses
};

}  // namespace isoscale::machine
