// The verbs of the program. Each function declares a subcommand, which runs when the command line is parsed.
#pragma once

namespace CLI {
class App;
}

namespace cosmati::cli {

void add_info_command(CLI::App& program);
void add_run_command(CLI::App& program);
void add_verify_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_bench_peer_command(CLI::App& program);  // hidden: the process that times a peer
void add_explain_command(CLI::App& program);
void add_compile_command(CLI::App& program);
void add_warm_command(CLI::App& program);
void add_find_command(CLI::App& program);
void add_tune_command(CLI::App& program);
void add_replay_command(CLI::App& program);
void add_plot_command(CLI::App& program);
void add_list_command(CLI::App& program);
void add_train_command(CLI::App& program);
void add_predict_command(CLI::App& program);
void add_generate_command(CLI::App& program);

}  // namespace cosmati::cli
