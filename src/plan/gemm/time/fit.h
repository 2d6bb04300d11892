// The constants of the predicted time of the main loop warp_specialized.
#pragma once

namespace cosmati::plan {

// The constants of the prediction. Those marked (H100) were fitted to 320 measurements of 37 problems on an
// H100 (docs/decisions/0040). The others were fitted earlier to 2600 measurements of 33 problems with 27
// policies and up to 6 splits on an H200, unless a comment says that they are predicted, or where they were
// measured. Those marked (16 bits) were fitted to 650 measurements of 170 products in f16 and bf16 on an H200
// (docs/decisions/0045) and apply to products of 16-bit types; fit_of_others has the values before.
struct Fit {
  double launch_seconds = 2.15e-6;
  // Less for products and windows of a single round with many stages of one block, which are all loaded at
  // once (12 products of 3 to 9 us with six policies, 11 layers with nine, on an H200; docs/decisions/0045).
  double many_stages_seconds = 0.5e-6;
  // More for clusters that share operands, and the share of loading a shared operand that they save. (16
  // bits)
  double cluster_seconds = 0.3e-6, saved_by_sharing = 0.05;
  // Clusters of four were faster than predicted without these factors: of 79 products whose plan 0.95
  // changed, 53 became faster, by 5.5 % on average, and 21 in clusters of 4x1 and 1x4 by another 5 % with
  // 0.92 (H200; docs/decisions/0045). Tiles of few steps have little to share: 2048x2048x2 took 7.3 us, in
  // single blocks 4.7.
  double of_square_of_four = 0.95, of_row_of_four = 0.92;
  // In batches: how much longer writing takes with twice as many loads for each element (H200: 2048x2048x128,
  // 64 matrices, by 15 policies; 128x256 in pairs took 2 to 6 % less than alone in ten batches with short k).
  double write_slowed_by_loads = 0.2;
  double not_overlapped = 0.33;  // share of loading or multiplying, the shorter of the two

  // Multiplying: shares of the tensor cores' rate. One warpgroup does not saturate them, nor do two in
  // ping-pong that wait for promoted sums.
  double share_of_peak = 0.84;  // (16 bits)
  double alone = 0.9;           // (16 bits)
  double ping_pong = 0.98, promoting_ping_pong = 0.62;
  double single_turn = 0.88;  // of ping-pong, if a block has one tile (H100: 3136x512x2048)
  // The products of a tile are added one after another: clocks per 32 bytes of k, however few columns they
  // have (2x6144x4096 and 16x9216x3072 by 64x16 and 128x16 on an H200).
  double clocks_of_pack = 50;
  // From the load of a stage until its products can begin, with a cold L2 cache: with few stages, steps wait
  // for it (64x64, 5 and 10 stages, ten products of 3 to 9 us on an H200; docs/decisions/0045).
  double stage_seconds = 0.95e-6;
  double tile_seconds = 0.06e-6;
  // M-major A of 32-bit elements through registers: shares of the rate at 4096^3, where ping-pong 128x128
  // took 530 us, cooperative 128x256 380 us.
  double through_registers = 0.97, through_registers_ping_pong = 0.68;
  // The power limit under sustained load (H100): at 10240x4096x4096, tiles of 128x128 took 533 us, 128x256
  // 447 us, and 256x256 with sums in f16 429 us.
  double power_seconds = 200e-6;  // beyond which the limit applies fully
  double power = 0.35, power_of_loads = 0.1, power_of_reads = 0.2, min_power = 0.2, max_power = 0.8;
  double power_of_sharing = 0.5;  // saved by reading a shared tile from L2 once (2048x32000x2048 on an H200)

  // Operands by TMA: bytes per clock and multiprocessor, and the share that is left if rows begin within
  // sectors of 32 bytes of L2, of which each touches one more (1000x2000x3000 on an H200), or within its
  // lines of 128 bytes (24 products with 15 policies each; docs/decisions/0045).
  double intake = 60, intake_of_cluster = 68;  // (16 bits)
  double within_sectors = 0.52, within_sectors_of_cluster = 0.66;
  double within_lines = 0.91, within_lines_of_cluster = 1;  // (16 bits)
  double clocks_of_missing_row = 4;                         // (16 bits)
  double missing_of_last = 0.5;  // share for the last tile, if there are others (16 bits)
  // Rows of less than 128 bytes (H100, docs/decisions/0040); those of 64 bytes took at most 8 clocks.
  double clocks_of_half_row = 4, clocks_of_short_row = 13;
  // Rows of windows and of their filter, of 64 bytes (H200: 1.9 to 3.1) and of 32 (H200: 1.6).
  double clocks_of_half_window = 2.2, clocks_of_short_window = 1.6;
  // A row of a box of an MN-major operand, however short: columns that are not a multiple of 64 are copied in
  // boxes of 32 to 8. With 1.6 instead of 1.2, 14 products whose plan changes were 2.7 % faster, and six 1x1
  // convolutions 7 % slower (H200). (16 bits)
  double clocks_of_box_row = 1.6;
  // How much longer rows of 128 bytes of an MN-major operand take if tiles begin within lines of L2, so that
  // each row touches two (25 products with widths of 48 to 208 columns on an H200). (16 bits)
  double crossing_lines = 1.5;
  // Operands loaded by threads, in clocks of a warp: measured at 4096^3 (12 to 16 per copy), and shifts for
  // rows of 17 and 255 elements of two bytes (H200).
  double clocks_of_copy = 14, clocks_of_shift = 74, clocks_of_wait = 700.0 / (4 * 4);
  // The share of the shorter of copies by threads and products that the longer one does not hide in a batch
  // (NCHW layers of 14x14 pixels on an H200: 20 with the tiles of the plan, 8 tiles of one of them).
  double copies_not_hidden = 0.25;

  // Storing a tile: the rate of a multiprocessor when all store at the same time. If D is M-major, a warp
  // writes 16 adjacent elements, half a cache line.
  double store_seconds = 0.53e-6, store_rate = 68e9, store_rate_along_m = 32e9;  // (16 bits)
  // In a batch whose rows do not begin at multiples of 16 bytes, threads store smaller units (H200: results
  // of 14x14 pixels in NCHW).
  double store_rate_in_parts = 20e9;
  double staged_seconds = 0.35e-6;  // a tile through shared memory (H200)
  double waits_for_buffer = 1.4;    // (H100)
  // Ping-pong with no more stages than steps: 4 stages took 12 % longer than 6 (4096x32768x512 on an H200).
  double few_stages = 1.1;
  double missing_rate = 23.4e9, not_hidden = 0.25;  // elements that do not exist (H100)

  // Memory: the bytes in flight needed for the full rate, expressed as a latency, and the share of that rate
  // that is reached (H100); the share for results.
  double latency_seconds = 1.2e-6, share_of_loads = 0.92, share_of_stores = 0.67;
  // Fitted to 2900 measurements of 163 products in bf16 on an H200 (docs/decisions/0040): the rate of the
  // loads of one multiprocessor, and the cost of reading the larger operand again, relative to its first
  // reading.
  double multiprocessor_rate = 36e9, read_again = 0.4;
  double shared_less = 0.07;  // of the operands of streamed tiles, which blocks load separately (H100)
  double bytes_in_l2 = 16e6;  // partial sums that fit in the L2 cache

  // Adding parts: in a cluster, exchange_seconds (H100); otherwise by flags and slots. handed_on was measured
  // including a fill of counters (2.5 us), which flags do not need.
  double exchange_seconds = 0.6e-6, exchange_rate = 57e9;
  double slot_seconds = 0.12e-6, slot_rate = 97e9, handed_on = 2.6e-6;
};
inline constexpr Fit fit_of_16_bits;
// Convolutions and products of other types.
inline constexpr Fit fit_of_others = [] {
  Fit fit;
  fit.cluster_seconds = fit.saved_by_sharing = fit.power_of_sharing = fit.write_slowed_by_loads = 0;
  fit.of_square_of_four = fit.of_row_of_four = 1;
  fit.share_of_peak = 0.97, fit.alone = 0.68, fit.clocks_of_pack = 0;
  fit.intake = 55.4, fit.intake_of_cluster = 61;
  fit.within_sectors = fit.within_sectors_of_cluster = 0.64;
  fit.within_lines = fit.within_lines_of_cluster = 0.64;
  fit.clocks_of_missing_row = 5, fit.missing_of_last = 0.6, fit.clocks_of_box_row = 0;
  fit.crossing_lines = 1;
  fit.store_seconds = 0.46e-6, fit.store_rate_along_m = 55e9;
  return fit;
}();
// Convolutions by windows in tf32, which the power limit slows less: 41 measurements of 17 layers of VGG-16
// on an H200 were 0.70 to 0.99 of the predictions with the values of other types.
inline constexpr Fit fit_of_tf32_windows = [] {
  Fit fit = fit_of_others;
  fit.power = 0.19, fit.power_of_loads = fit.power_of_reads = 0.05, fit.min_power = 0.1;
  return fit;
}();

// Constants for products all of whose blocks run at the same time (is_single_round()), fitted to 720
// measurements of 160 products of 2.3 to 60 us on an H200 (docs/decisions/0045).
struct SingleRoundFit {
  double launch_seconds = 2.06e-6;
  double warpgroup_seconds = 0.24e-6;  // for each 64 rows of a tile beyond the first
  double cluster_seconds = 0.09e-6;
  // Bytes per clock and multiprocessor that a block loads, and that all blocks together load from L2, where
  // an operand that a cluster shares counts once.
  double intake = 88, intake_of_all = 80;
  // Rows that do not exist, which TMA fills with zeros: of a box at the edge of an operand, and of a tile
  // that only fills a cluster. In the same blocks, rows that exist.
  double clocks_of_missing_row = 4.25, clocks_of_absent_row = 3, clocks_of_row = 1.16;
  double pair = 1.08;  // how much longer loading takes in clusters of two, but not of four
  double share_of_peak = 1.08, clocks_of_pack = 44;
  double stage_seconds = 1.21e-6;  // from the load of a stage until its products can begin
  double share_of_memory = 0.98, not_overlapped = 0.4;
  double read_again = 0.36;  // share of an operand that each doubling of the clusters that read it adds
  double exchange_seconds = 0.74e-6, exchange_rate = 38.5e9;
  double store_rate = 44.5e9, store_rate_along_m = 21e9;
  // Longer products are predicted by Fit, which knows the power limit; by a mixture of both in between.
  double short_seconds = 20e-6, long_seconds = 36e-6;
};
inline constexpr SingleRoundFit fit_of_single_round;

}  // namespace cosmati::plan
