# For scripts in bench/gpu: sets LD_LIBRARY_PATH, so that the program finds libraries that are installed only as parts of other programs, and
# COSMATI_CUDNN to PyTorch's own cuDNN if it has one. PYTHON: the Python with torch (python3).
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
torch_cudnn=$("${PYTHON:-python3}" -c 'import importlib.util as u; s = u.find_spec("nvidia.cudnn"); print(list(s.submodule_search_locations)[0] if s else "")' 2>/dev/null)
if [ -n "$torch_cudnn" ] && [ -e "$torch_cudnn/lib/libcudnn.so.9" ]; then
  export COSMATI_CUDNN=$torch_cudnn/lib/libcudnn.so.9
  LD_LIBRARY_PATH=$torch_cudnn/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
for library in libnvrtc.so.13 libcudnn.so.9 libcublasLt.so.13 libcublas.so.13 libcufft.so.12; do
  ldconfig -p | grep -q "$library" && continue
  [ -e "/usr/local/cuda/lib64/$library" ] && continue
  found=$(find /usr /opt -name "$library" -print -quit 2>/dev/null)
  [ -n "$found" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$found")
done
export LD_LIBRARY_PATH
